import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { drain, select } from 'drainable'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'

function setOf(cluster: string, ...hosts: readonly string[]) {
  const lb_endpoints = hosts.map((address) => ({
    endpoint: { address: { socket_address: { address, port_value: 80 } } },
  }))
  return { cluster_name: cluster, endpoints: [{ lb_endpoints }] }
}

async function stage() {
  const dir = await mkdtemp(join(tmpdir(), 'drainable-files-'))
  const files = { web: join(dir, 'web.json'), api: join(dir, 'api.json') }
  const write = async (file: string, ...resources: readonly unknown[]): Promise<void> => {
    await writeFile(`${file}.new`, JSON.stringify({ version_info: '1', resources }))
    await rename(`${file}.new`, file)
  }
  await write(files.web, setOf('web', '10.0.0.1', '10.0.0.2'))
  await write(files.api, setOf('api', '10.0.0.1', '10.0.0.3'))
  const fake = await startFake({ pools: { web: [], api: [] }, eds: { files } })
  const sink = fileEndpoints([
    { cluster: 'web', path: files.web },
    { cluster: 'api', path: files.api },
  ])
  const lb = envoy({ endpoints: sink, admin: [fake.url] })
  return {
    files,
    write,
    lb,
    [Symbol.asyncDispose]: async () => {
      await lb.close()
      await fake.close()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

test('a machine is drained in every cluster, each in its own file', async () => {
  await using it = await stage()
  const report = await drain(it.lb, { address: '10.0.0.1' }, { timeout: '30s' })
  expect(report.members.map(({ ref, verifiedIdle }) => [ref.pool, verifiedIdle]).sort()).toEqual([
    ['api', true],
    ['web', true],
  ])
  for (const file of Object.values(it.files)) {
    const text = await readFile(file, 'utf8')
    expect(text.match(/DRAINING/g)).toHaveLength(1)
  }
})

test('an unreadable file makes no member absent', async () => {
  await using it = await stage()
  expect(await select(it.lb, 'all')).toHaveLength(4)
  await rm(it.files.api)
  await expect(select(it.lb, { pool: 'web' })).rejects.toMatchObject({ code: 'UNREACHABLE' })
})

test('a file with several sets is refused, as Envoy refuses it', async () => {
  await using it = await stage()
  await it.write(it.files.api, setOf('api', '10.0.0.3'), setOf('web', '10.0.0.1'))
  await expect(select(it.lb, { pool: 'api' })).rejects.toThrow(
    /holds 2 endpoint sets \('api', 'web'\): Envoy refuses a file with more than one/,
  )
})

test('a path that only a shell understands is refused', () => {
  expect(() => fileEndpoints({ cluster: 'web', path: '~/web.json' })).toThrow(
    "path: '~' means nothing outside of a shell; write join(homedir(), ...)",
  )
})
