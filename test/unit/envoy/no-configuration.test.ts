import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDrain } from 'drainable'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'
import { describe, expect, test } from 'vitest'
import { eventually } from '../../support/eventually.js'

const MEMBER = '10.0.0.1:80'

const WITHOUT = ['/clusters', '/stats', '/server_info']

// Subsets, sticky sessions, panic thresholds and removed clusters are told by nothing else.
describe('a proxy without /config_dump', () => {
  async function stage() {
    const dir = await mkdtemp(join(tmpdir(), 'drainable-envoy-'))
    const path = join(dir, 'web.json')
    const lb_endpoints = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((address) => ({
      endpoint: { address: { socket_address: { address, port_value: 80 } } },
    }))
    const resources = [{ cluster_name: 'web', endpoints: [{ lb_endpoints }] }]
    await writeFile(`${path}.new`, JSON.stringify({ version_info: '1', resources }))
    await rename(`${path}.new`, path)
    const proxy = { pools: { web: [] }, eds: { file: path } }
    const blind = await startFake({ ...proxy, allowPaths: WITHOUT })
    const seen = await startFake({ ...proxy, node: 'envoy-2' })
    const provide = (admin: string[]) =>
      envoy({ endpoints: fileEndpoints({ cluster: 'web', path }), admin })
    return {
      blind,
      seen,
      path,
      provide,
      [Symbol.asyncDispose]: async () => {
        await blind.close()
        await seen.close()
        await rm(dir, { recursive: true })
      },
    }
  }

  test('alone is refused, and nothing is changed', async () => {
    await using it = await stage()
    await using lb = it.provide([it.blind.url])
    const before = await readFile(it.path, 'utf8')
    const run = startDrain(lb, { pool: 'web', member: MEMBER }, { timeout: '10s' })
    expect(await run.done).toMatchObject({
      outcome: 'refused',
      error: {
        code: 'FORBIDDEN',
        message: expect.stringMatching(/\/config_dump.*allow_paths/) as string,
      },
    })
    expect(await readFile(it.path, 'utf8')).toBe(before)
  })

  test('beside others keeps a member from idle, and the path is named', async () => {
    await using it = await stage()
    await using lb = it.provide([it.seen.url, it.blind.url])
    const run = startDrain(lb, { pool: 'web', member: MEMBER }, { timeout: '20s' })
    await eventually(() => {
      const [member] = run.report().members
      const scopes = member?.lastReading?.scopes ?? []
      expect(scopes.some(({ state, inForce }) => state === 'read' && inForce === true)).toBe(true)
      expect(run.why().map(({ text }) => text)).toContainEqual(
        expect.stringMatching(/\/config_dump.*allow_paths/),
      )
      expect(member?.phase).not.toBe('idle')
    })
    await run.close()
  })
})
