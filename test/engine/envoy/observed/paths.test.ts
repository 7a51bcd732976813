import { describe, expect, test } from 'vitest'
import { select, watch } from 'drainable'
import { envoy, observedEndpoints } from 'drainable/envoy'
import { engines } from '../../../support/engines.js'
import { startBackend } from '../../../support/envoy/backend.js'
import { startEnvoy, workDir } from '../../../support/envoy/proxy.js'
import { setOf, writeEds } from '../../../support/envoy/sets.js'
import { until } from '../../../support/wait.js'

const WITHOUT = ['/clusters', '/stats', '/server_info', '/listeners']

/** Two proxies with a file each. */
async function stage(path: string, allowed: readonly (readonly string[] | undefined)[]) {
  const dir = await workDir()
  const backends = await Promise.all([startBackend(), startBackend()])
  const [a, b] = backends
  const files = ['one', 'two'].map((id) => `${dir.path}/${id}.json`)
  const write = async (i: number, version: string, status?: string): Promise<void> => {
    const extra = (port: number) =>
      status !== undefined && port === a.port ? { health_status: status } : {}
    await writeEds(files[i] ?? '', [setOf([a.port, b.port], 'web', extra)], version)
  }
  for (const i of [0, 1]) await write(i, '1')
  const proxies = await Promise.all(
    files.map((file, i) => {
      const allowPaths = allowed[i]
      return startEnvoy({
        path,
        id: `envoy-${i}`,
        eds: { file },
        ...(allowPaths === undefined ? {} : { allowPaths }),
      })
    }),
  )
  const admin = proxies.map((proxy) => proxy.admin)
  return {
    ref: { pool: 'web', member: a.member },
    lb: envoy({ endpoints: observedEndpoints(), admin }),
    write,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([...proxies, ...backends].map((one) => one[Symbol.asyncDispose]()))
      await dir[Symbol.asyncDispose]()
    },
  }
}

describe.each(engines('envoy'))('observed Envoy $version without /config_dump', ({ path }) => {
  test('hidden in all proxies: refused, with the path that must be allowed', async () => {
    await using it = await stage(path, [WITHOUT, WITHOUT])
    await using lb = it.lb
    await expect(select(lb, { pool: 'web' })).rejects.toMatchObject({
      code: 'FORBIDDEN',
      message: expect.stringMatching(/\/config_dump.*allow_paths/) as string,
    })
  })

  test('hidden in one proxy: no member is idle, and the path is named', async () => {
    await using it = await stage(path, [undefined, WITHOUT])
    await using lb = it.lb
    await using run = watch(lb, it.ref)
    const member = () => run.report().members[0]
    for (const i of [0, 1]) await it.write(i, '2', 'DRAINING')
    const scopes = () => member()?.lastReading?.scopes ?? []
    const drained = () =>
      scopes().some(({ state, inForce }) => state === 'read' && inForce === true)
    await until(drained, 'the drain in the other proxy')
    expect(scopes()).toContainEqual(
      expect.objectContaining({
        state: 'unread',
        note: expect.stringMatching(/\/config_dump.*allow_paths/) as string,
      }),
    )
    expect(member()?.phase).not.toBe('idle')
  })
})
