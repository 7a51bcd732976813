import { describe, expect, test } from 'vitest'
import { select, watch, type Drain } from 'drainable'
import { envoy, observedEndpoints } from 'drainable/envoy'
import { engines } from '../../support/engines.js'
import { startBackend } from '../../support/envoy/backend.js'
import { ask } from '../../support/envoy/client.js'
import { startControlPlane } from '../../support/envoy/control-plane.js'
import { startEnvoy } from '../../support/envoy/proxy.js'
import { delay, until } from '../../support/wait.js'

// One that is missing has a test of its own, see `engines()`.
const planes = engines('go-control-plane')
const ADS = { resource_api_version: 'V3', ads: {} }

/** Two proxies that take clusters and sets from go-control-plane, state of the world and delta. */
async function stage(path: string) {
  const [engine] = planes
  if (engine === undefined) throw new Error('no go-control-plane')
  const a = await startBackend()
  const b = await startBackend()
  const plane = await startControlPlane(engine, ['one', 'two'])
  const host = (port: number, status = 'HEALTHY') => ({ address: '127.0.0.1', port, status })
  const give = (status: string | undefined, name = 'shop', service = `${name}-set`) => {
    const gone = status === undefined
    const hosts = [...(gone ? [] : [host(a.port, status)]), host(b.port)]
    return plane.set({ clusters: { [name]: service }, sets: { [service]: hosts } })
  }
  await give('HEALTHY')
  const proxies = await Promise.all(
    ['one', 'two'].map((id, i) =>
      startEnvoy({
        path,
        id,
        eds: { grpc: plane.port, ads: true, delta: i === 1 },
        route: { cluster: 'shop' },
        reconnect: '0.5s',
        cds: ADS,
      }),
    ),
  )
  const lb = envoy({ endpoints: observedEndpoints(), admin: proxies.map(({ admin }) => admin) })
  const members = async (pool: string) =>
    (await select(lb, { pool }).catch(() => [])).map(({ ref }) => ref.member).sort()
  await until(async () => (await members('shop')).length === 2, 'two endpoints')
  return {
    a,
    b,
    plane,
    lb,
    give,
    members,
    /** Whether every proxy shows that in its clusters. */
    shown: async (line: string) => {
      const texts = await Promise.all(proxies.map((proxy) => proxy.get('/clusters')))
      return texts.every((text) => text.includes(line))
    },
    ref: { pool: 'shop', member: a.member },
    hold: async () => {
      const held: Promise<unknown>[] = []
      while (a.held === 0) {
        held.push(ask(proxies[1]?.http ?? 0, '/hold').catch(() => undefined))
        await delay(20)
      }
      return async () => {
        a.release()
        b.release()
        await Promise.all(held)
      }
    },
    [Symbol.asyncDispose]: async () => {
      await lb.close()
      await Promise.all(proxies.map((proxy) => proxy[Symbol.asyncDispose]()))
      await plane[Symbol.asyncDispose]()
      await a[Symbol.asyncDispose]()
      await b[Symbol.asyncDispose]()
    },
  }
}

function phaseOf(run: Drain): string | undefined {
  return run.report().members[0]?.phase
}

function isBusy(run: Drain): boolean {
  return run.why().some(({ code }) => code === 'in-flight' || code === 'long-lived')
}

const proxies = planes.length === 0 ? [] : engines('envoy')

describe.each(proxies)('Envoy $version under go-control-plane', ({ path }) => {
  test('it drains, dies, comes back and removes', async () => {
    await using it = await stage(path)
    const { lb, ref, plane } = it
    const end = await it.hold()
    await using run = watch(lb, ref)
    await it.give('DRAINING')
    await until(() => phaseOf(run) === 'draining' && isBusy(run), 'work in flight')
    await plane.kill()
    await until(() => phaseOf(run) === 'draining' && isBusy(run), 'the same without it')
    await plane.start()
    await it.give('DRAINING')
    expect(phaseOf(run)).toBe('draining')
    await end()
    await until(() => phaseOf(run) === 'idle', 'idle')
    expect(run.report().members[0]?.proof?.samples.at(-1)?.scopes).toHaveLength(2)
    await it.give(undefined)
    await until(() => phaseOf(run) === 'removed', 'the removal')
    expect(await it.members('shop')).toEqual([it.b.member])
  })

  test('it renames the set under a request: the work is kept', async () => {
    await using it = await stage(path)
    const { lb, ref } = it
    const end = await it.hold()
    await using run = watch(lb, ref)
    await it.give('DRAINING')
    await until(() => phaseOf(run) === 'draining' && isBusy(run), 'work in flight')
    await it.give('DRAINING', 'shop', 'other-set')
    await until(() => it.shown('shop::eds_service_name::other-set'), 'the other set')
    // The clusters are new objects in both proxies by now, and their rows count from zero.
    const looked = run.report().members[0]?.lastReading?.scopes[0]?.sampledAt
    await until(
      () => run.report().members[0]?.lastReading?.scopes[0]?.sampledAt !== looked,
      'another look',
    )
    expect(it.a.held).toBeGreaterThan(0)
    expect(phaseOf(run)).toBe('draining')
    await end()
    await until(() => phaseOf(run) === 'idle', 'idle')
  })

  test('it renames the cluster: the old one is gone, the new one drained', async () => {
    await using it = await stage(path)
    const { lb, ref } = it
    await it.give('DRAINING')
    await using run = watch(lb, ref)
    const phases: string[] = []
    run.on('phase', ({ to }) => phases.push(to))
    await until(() => phaseOf(run) === 'idle', 'idle')
    await it.give('DRAINING', 'store')
    await until(() => phaseOf(run) === 'removed', 'a member that is gone')
    expect(phases.slice(-2)).toEqual(['idle', 'removed'])
    expect((await run.done).members[0]?.outcome).toBe('gone')
    await until(async () => (await it.members('store')).length === 2, 'the other cluster')
    const [found] = await select(lb, { pool: 'store', member: ref.member })
    expect(found).toMatchObject({ present: true, own: 'drain' })
    await using other = watch(lb, { pool: 'store', member: ref.member })
    await until(() => phaseOf(other) === 'idle', 'idle under the new name')
  })
})
