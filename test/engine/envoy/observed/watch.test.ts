import { describe, expect, test } from 'vitest'
import { drain, select, watch } from 'drainable'
import { envoy, observedEndpoints } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { engines } from '../../../support/engines.js'
import { ask } from '../../../support/envoy/client.js'
import { delay, until } from '../../../support/wait.js'
import { setOf } from '../../../support/envoy/sets.js'
import { startBackend } from '../../../support/envoy/backend.js'
import { startEnvoy } from '../../../support/envoy/proxy.js'

/** A control plane of another client: it owns the sets, and the provider under test knows nothing of it. */
async function controlPlane(port: number, sets: readonly unknown[]) {
  const server = grpcEndpoints({ port, initial: sets })
  await server.open?.({ held: () => Promise.resolve([]) })
  return server
}

async function stage(path: string) {
  const a = await startBackend()
  const b = await startBackend()
  const setWith = (status?: string, gone = false) => [
    setOf(gone ? [b.port] : [a.port, b.port], 'web', (port) =>
      status !== undefined && port === a.port ? { health_status: status } : {},
    ),
  ]
  let plane = await controlPlane(0, setWith())
  const port = plane.address?.port ?? 0
  const proxies = await Promise.all(
    ['one', 'two'].map((id, i) => startEnvoy({ path, id, eds: { grpc: port, delta: i === 1 } })),
  )
  const lb = envoy({ endpoints: observedEndpoints(), admin: proxies.map(({ admin }) => admin) })
  return {
    a,
    b,
    lb,
    proxies,
    ref: { pool: 'web', member: a.member },
    give: (status?: string, gone = false) => plane.set(setWith(status, gone)),
    /** The control plane is away, and comes back with the same sets. */
    restart: async (status?: string) => {
      await plane.close()
      plane = await controlPlane(port, setWith(status))
    },
    [Symbol.asyncDispose]: async () => {
      await lb.close()
      await Promise.all(proxies.map((proxy) => proxy[Symbol.asyncDispose]()))
      await plane.close()
      await a[Symbol.asyncDispose]()
      await b[Symbol.asyncDispose]()
    },
  }
}

describe.each(engines('envoy'))('Envoy $version of another control plane', ({ path }) => {
  test('its control plane drains, watch says idle, and it removes', async () => {
    await using it = await stage(path)
    const { a, lb, ref, proxies } = it
    const members = (await select(lb, { pool: 'web' })).map(({ ref: found }) => found.member)
    expect(members.sort()).toEqual([a.member, it.b.member].sort())
    await expect(drain(lb, ref, { timeout: '20s' })).rejects.toThrow(/another control plane owns/)

    const held: Promise<unknown>[] = []
    while (a.held === 0) {
      held.push(ask(proxies[1]?.http ?? 0, '/hold').catch(() => undefined))
      await delay(20)
    }
    await using run = watch(lb, ref)
    await it.give('DRAINING')
    const inFlight = () =>
      run.why().some(({ code }) => code === 'in-flight' || code === 'long-lived')
    await until(() => run.report().members[0]?.phase === 'draining' && inFlight(), 'work in flight')
    await it.restart('DRAINING')
    expect(run.report().members[0]?.phase).toBe('draining')
    a.release()
    it.b.release()
    await Promise.all(held)
    await until(() => run.report().members[0]?.phase === 'idle', 'idle')
    const proof = run.report().members[0]?.proof
    expect(proof?.samples.at(-1)?.scopes).toHaveLength(2)

    await it.give(undefined, true)
    await until(() => run.report().members[0]?.phase === 'removed', 'the removal')
    expect(run.report().members[0]?.lost).toEqual([])
  })
})
