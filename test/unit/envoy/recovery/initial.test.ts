import { describe, expect, test } from 'vitest'
import { drain, fileTickets, heldMembers, resumeDrain, type Ticket } from 'drainable'
import {
  callbackEndpoints,
  envoy,
  restEndpoints,
  type AdoptedEndpoints,
  type ServedEndpoints,
} from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { startFake, type EnvoyFake } from 'drainable/testing/envoy'
import { freePort } from '../../../../scripts/ports.ts'
import { systemClock } from '../../../../src/provider/clock.js'
import { temporaryFolder } from '../../tickets/set-up.js'

const ctx = () => ({ signal: AbortSignal.timeout(10_000), clock: systemClock })
const A = '10.0.0.1:80'
const B = '10.0.0.2:80'
const C = '10.0.0.3:80'

const hostOf = (member: string) => ({
  endpoint: { address: { socket_address: { address: member.slice(0, -3), port_value: 80 } } },
})
const named = (cluster_name: string, ...members: readonly string[]) => ({
  cluster_name,
  endpoints: [{ lb_endpoints: members.map(hostOf) }],
})
const setOf = (...members: readonly string[]) => named('web', ...members)
const held = (...members: readonly string[]) => members.map((member) => ({ pool: 'web', member }))

/** What a sink serves first, by member. */
async function first(
  initial: AdoptedEndpoints,
  fakes: readonly EnvoyFake[],
  sinkOf: (initial: AdoptedEndpoints) => ServedEndpoints = (given) =>
    restEndpoints({ port: 0, initial: given }),
): Promise<Record<string, unknown>> {
  await using lb = envoy({
    endpoints: sinkOf(initial),
    admin: () => Promise.resolve(fakes.map(({ url }) => url)),
  })
  const { readings } = await lb.observe('all', ctx())
  return Object.fromEntries(
    readings.map((reading) => [reading.ref.member, reading.present && reading.own]),
  )
}

describe.each([
  ['REST', (initial: AdoptedEndpoints) => restEndpoints({ port: 0, initial })],
  ['gRPC', (initial: AdoptedEndpoints) => grpcEndpoints({ port: 0, initial })],
])('initial { adopt, else, held } by %s', (_, sinkOf) => {
  test('a set of the fleet is adopted, and held members drained', async () => {
    await using fake = await startFake({ pools: { web: [A, B] } })
    const initial = { adopt: true, else: [setOf(A, B, C)], held: held(B) } as const
    expect(await first(initial, [fake], sinkOf)).toEqual({ [A]: 'ready', [B]: 'drain' })
  })

  test('a new fleet gets else, with held members drained', async () => {
    await using fake = await startFake({ pools: { web: [] } })
    const initial = { adopt: true, else: [setOf(A, B)], held: held(A) } as const
    expect(await first(initial, [fake], sinkOf)).toEqual({ [A]: 'drain', [B]: 'ready' })
  })

  test('without a proxy to ask, else is served', async () => {
    const initial = { adopt: true, else: [setOf(A, B)], held: held(A) } as const
    expect(await first(initial, [], sinkOf)).toEqual({ [A]: 'drain', [B]: 'ready' })
  })
})

test('proxies with different members get else, with their drains', async () => {
  await using one = await startFake({ pools: { web: [A, B] } })
  await using two = await startFake({ pools: { web: [A, B, C] }, node: 'two' })
  await two.setBehind({ pool: 'web', member: C }, 'drain')
  const initial = { adopt: true, else: [setOf(A, B, C)], held: held(A) } as const
  expect(await first(initial, [one, two])).toEqual({ [A]: 'drain', [B]: 'ready', [C]: 'drain' })
})

test('held names the cluster if its set has another name', async () => {
  await using fake = await startFake({ pools: { shop: [A, B] }, services: { shop: 'web' } })
  const initial = { adopt: true, held: [{ pool: 'shop', member: A }] } as const
  expect(await first(initial, [fake])).toEqual({ [A]: 'drain', [B]: 'ready' })
})

describe('held names a cluster whose set no proxy tells', () => {
  test('the member is drained in the set that has it', async () => {
    const initial = {
      adopt: true,
      else: [setOf(A, B)],
      held: [{ pool: 'shop', member: A }],
    } as const
    expect(await first(initial, [])).toEqual({ [A]: 'drain', [B]: 'ready' })
  })

  test('a set of the same name without the member is not the one', async () => {
    const held = [{ pool: 'shop', member: A }]
    const initial = { adopt: true, else: [setOf(A, B), named('shop', C)], held } as const
    expect(await first(initial, [])).toEqual({ [A]: 'drain', [B]: 'ready', [C]: 'ready' })
  })

  test('a set of that name with the member is the only one', async () => {
    const held = [{ pool: 'shop', member: A }]
    const initial = { adopt: true, else: [named('web', A), named('shop', A)], held } as const
    await using lb = envoy({ endpoints: restEndpoints({ port: 0, initial }), admin: () => none() })
    const { readings } = await lb.observe('all', ctx())
    expect(readings.map(({ ref, ...one }) => [ref.pool, 'own' in one && one.own])).toEqual([
      ['web', 'ready'],
      ['shop', 'drain'],
    ])
  })
})

const none = (): Promise<string[]> => Promise.resolve([])

test.each([
  ['REST', restEndpoints],
  ['gRPC', grpcEndpoints],
])('set() before a %s sink is opened replaces its initial set', async (_, make) => {
  await using fake = await startFake({ pools: { web: [A, B] } })
  const sink = make({ port: 0, initial: [setOf(A, B)] })
  await sink.set([setOf(A, B, C)])
  await using lb = envoy({ endpoints: sink, admin: [fake.url] })
  const { readings } = await lb.observe('all', ctx())
  expect(readings.map(({ ref }) => ref.member)).toEqual([A, B, C])
})

describe.each([
  ['REST', () => restEndpoints({ port: 0 })],
  ['gRPC', () => grpcEndpoints({ port: 0 })],
])('set() of a %s sink that adopts', (_, sinkOf) => {
  const members = async (lb: ReturnType<typeof envoy>) => {
    const { readings } = await lb.observe('all', ctx())
    return readings.map(({ ref }) => `${ref.pool} ${ref.member}`).sort()
  }

  test('before it adopts: other sets are adopted, and this one stays', async () => {
    await using fake = await startFake({ pools: { web: [A, B], api: [A] } })
    const sink = sinkOf()
    await sink.set([setOf(B, C)])
    await using lb = envoy({ endpoints: sink, admin: [fake.url] })
    expect(await members(lb)).toEqual([`api ${A}`, `web ${B}`, `web ${C}`])
  })

  test('while it adopts: the adopted set does not replace it', async () => {
    await using fake = await startFake({ pools: { web: [A, B], api: [A] } })
    const sink = sinkOf()
    let asked = 0
    const admin = async () => {
      if (asked++ === 0) await sink.set([setOf(B, C)])
      return [fake.url]
    }
    await using lb = envoy({ endpoints: sink, admin })
    expect(await members(lb)).toEqual([`api ${A}`, `web ${B}`, `web ${C}`])
  })

  test('with nothing to adopt: it is served alone', async () => {
    await using fake = await startFake({ pools: { web: [] } })
    const sink = sinkOf()
    await sink.set([setOf(A)])
    await using lb = envoy({ endpoints: sink, admin: [fake.url] })
    expect(await members(lb)).toEqual([`web ${A}`])
  })
})

test('nothing is served while held fails, and the call says why', async () => {
  await using fake = await startFake({ pools: { web: [A, B] } })
  const failing = () => Promise.reject(new Error('the store is away'))
  await expect(first({ adopt: true, held: failing }, [fake])).rejects.toThrow(
    /initial\.held failed.*the store is away/,
  )
  const odd = () => Promise.resolve(['web/a'] as never)
  await expect(first({ adopt: true, held: odd }, [fake])).rejects.toThrow(/initial: held\[0\]/)
})

test('nothing is served while no proxy answers', async () => {
  const fake = await startFake({ pools: { web: [] } })
  await fake.close()
  const initial = { adopt: true, else: [setOf(A, B)] } as const
  await expect(first(initial, [fake])).rejects.toMatchObject({ code: 'UNREACHABLE' })
})

test.each([
  ['a typo', { adopt: true, helt: [] }, 'initial'],
  ['no adopt', { else: [] }, 'initial'],
  ['a member without a pool', { adopt: true, held: [{ member: A }] }, 'initial.held'],
  ['an empty set in else', { adopt: true, else: [{ cluster_name: 'web' }] }, 'initial.else'],
])('%s in initial is refused', (_, initial, field) => {
  for (const sinkOf of [restEndpoints, grpcEndpoints]) {
    expect(() => sinkOf({ port: 0, initial: initial as never })).toThrow(field)
  }
})

test('a restart of controller and proxies opens no held member', async () => {
  await using folder = await temporaryFolder()
  const tickets = fileTickets(folder.path)
  const admin = await freePort()
  const before = await startFake({ pools: { web: [] }, port: admin })
  // The port is a part of the instance that tickets belong to.
  const port = await freePort()
  const start = async () => {
    const sink = restEndpoints({
      port,
      initial: {
        adopt: true,
        else: [setOf(A, B)],
        held: (instance) => heldMembers(tickets, { instance }),
      },
    })
    const lb = envoy({ endpoints: sink, admin: [before.url] })
    await lb.observe('all', ctx())
    return lb
  }
  const one = await start()
  await before.follow({ rest: `http://127.0.0.1:${port}` })
  await drain(one, { pool: 'web', member: A }, { timeout: '50s', tickets, id: 'job' })
  await one.close()
  await before.close()

  // Only its ticket knows of the drain now.
  await using fresh = await startFake({ pools: { web: [] }, port: admin })
  await using again = await start()
  await fresh.follow({ rest: `http://127.0.0.1:${port}` })
  await expect.poll(() => fresh.send('web')?.member).toBe(B)
  for (let i = 0; i < 10; i++) expect(fresh.send('web')?.member).toBe(B)
  const ticket = (await tickets.get('job')) as Ticket
  await using resumed = resumeDrain(again, ticket, { tickets })
  const report = await resumed.done
  expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
})

test('a proxy that was replaced between two looks has ended', async () => {
  await using before = await startFake({ pools: { web: [A, B, C] } })
  await using after = await startFake({ pools: { web: [A, B, C] }, node: 'after' })
  const set = setOf(A, B, C)
  const store = new Map<string, Ticket>()
  const lbOf = (admin: readonly string[]) =>
    envoy({
      endpoints: callbackEndpoints({
        load: () => Promise.resolve(set),
        publish: async (next) => {
          Object.assign(set, next)
          for (const fake of [before, after])
            await fake.setBehind({ pool: 'web', member: A }, 'drain')
        },
      }),
      admin,
    })
  const one = lbOf([before.url])
  const ref = { pool: 'web', member: A }
  await drain(one, ref, { timeout: '50s', id: 'job', onTicket: (t) => void store.set(t.id, t) })
  await one.close()
  await using two = lbOf([after.url])
  await using resumed = resumeDrain(two, store.get('job')!)
  const report = await resumed.done
  expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
})
