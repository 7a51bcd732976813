import { describe, expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { callbackEndpoints, envoy } from 'drainable/envoy'
import { startFake, type EnvoyFake, type FakeOptions } from 'drainable/testing/envoy'
import {
  PreviousWork,
  type PreviousTrace,
} from '../../../../src/adapters/envoy/session/previous.js'
import { Parent } from '../../../../src/kit/envoy/parent.js'
import { systemClock } from '../../../../src/provider/clock.js'

const clock = systemClock
const ctx = () => ({ signal: AbortSignal.timeout(10_000), clock })
const names = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80', '10.0.0.4:80']
const ref = { pool: 'web', member: names[0]! }

/** A control plane of another client over one fake. */
async function behind(options: FakeOptions = {}) {
  const fake: EnvoyFake = await startFake({ pools: { web: names }, statsFlush: 300, ...options })
  const statuses = new Map<string, string>()
  const load = () =>
    Promise.resolve({
      cluster_name: 'web',
      endpoints: [
        {
          lb_endpoints: names.map((name) => ({
            health_status: statuses.get(name) ?? 'HEALTHY',
            endpoint: {
              address: { socket_address: { address: name.slice(0, -3), port_value: 80 } },
            },
          })),
        },
      ],
    })
  const publish = async (set: unknown): Promise<void> => {
    const { endpoints } = set as { endpoints: { lb_endpoints: Lb[] }[] }
    for (const lb of endpoints.flatMap((group) => group.lb_endpoints)) {
      const member = `${lb.endpoint.address.socket_address.address}:80`
      const status = lb.health_status ?? 'HEALTHY'
      if (statuses.get(member) === status) continue
      statuses.set(member, status)
      await fake.setBehind({ pool: 'web', member }, status === 'DRAINING' ? 'drain' : 'ready')
    }
  }
  const lb = () => envoy({ endpoints: callbackEndpoints({ load, publish }), admin: [fake.url] })
  return { fake, lb }
}

interface Lb {
  endpoint: { address: { socket_address: { address: string } } }
  health_status?: string
}

describe('a hot restart', () => {
  test('keeps the old process as an unread scope until it is empty', async () => {
    const { fake, lb } = await behind()
    await using one = lb()
    await one.observe([ref], ctx())
    const end = await fake.occupy(ref)
    await fake.hotRestart()
    await using two = lb()
    for (const provider of [one, two]) {
      const { readings } = await provider.observe([ref], ctx())
      expect(readings[0]?.scopes).toMatchObject([
        { scope: fake.url, active: 0 },
        { scope: `${fake.url} before its hot restart`, active: 1, old: true, inForce: false },
      ])
    }
    const run = startDrain(one, ref, { timeout: '30s' })
    const busy = (): unknown => run.why().map(({ scope }) => scope)
    await expect.poll(busy).toContain(`${fake.url} before its hot restart`)
    await end()
    const report = await run.done
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true, lost: [] })
    await run.close()
    await fake.close()
  }, 40_000)

  test('keeps an old process with hidden figures unread until its time is over', async () => {
    const { fake, lb } = await behind({ hiddenStats: [/^server\./], parentShutdown: 1_000 })
    await fake.hotRestart()
    await using one = lb()
    const states = async () => {
      const { readings } = await one.observe([ref], ctx())
      return readings[0]?.scopes.map(({ state }) => state)
    }
    expect(await states()).toEqual(['read', 'unread'])
    await expect.poll(states, { timeout: 8_000 }).toEqual(['read', 'ended'])
    await fake.close()
  }, 20_000)

  test('a second one says that the figures have those of the process before', async () => {
    const { fake, lb } = await behind()
    await using one = lb()
    await fake.occupy(ref)
    await fake.hotRestart()
    await fake.occupy(ref)
    await fake.hotRestart()
    const run = startDrain(one, ref, { timeout: '30s' })
    const words = 'has up to 2 connections: what epoch 0 had when it was ended is counted too'
    await expect
      .poll(() => run.why().map(({ text }) => text))
      .toContainEqual(expect.stringContaining(words))
    await run.close()
    await fake.close()
  })

  test('is told from a plain restart, which ends what a ticket knew', async () => {
    const { fake, lb } = await behind()
    await fake.hotRestart()
    await fake.restart()
    await using one = lb()
    const snapshot = await one.observe([ref], ctx())
    expect(snapshot.readings[0]?.scopes.map(({ scope }) => scope)).toEqual([fake.url])
    // All processes were read: one that is not listed has ended, even one from a ticket.
    expect(snapshot.ended).toBe('unlisted')
    await fake.close()
  })

  test('costs a look one connection of its own', async () => {
    const { fake, lb } = await behind()
    await using one = lb()
    const before = await one.observe([ref], ctx())
    await fake.hotRestart()
    const after = await one.observe([ref], ctx())
    const [first, next] = [before, after].map(({ readings }) => readings[0]?.scopes[0]?.incarnation)
    expect(next).not.toBe(first)
    expect(after.readings[0]?.scopes[1]?.incarnation).toBe(first)
    await fake.close()
  })
})

describe('the parent of a hot restart', () => {
  // As long as the parent lives, what its own statistics said last of its uptime is added.
  const trace = (age: number, more: Partial<PreviousTrace> = {}): PreviousTrace => ({
    age: { current: age, all: age + 100, isUp: true },
    connections: 0,
    mergedAt: age + 200,
    active: new Map([['web', 0]]),
    ...more,
  })
  const parentOf = (epoch: number, shutdown: number): PreviousWork =>
    new PreviousWork(`epoch ${epoch}`, new Parent(epoch, shutdown))
  const states = (parent: PreviousWork, ...traces: readonly [PreviousTrace, number][]) =>
    traces.map(([one, now]) => parent.seen(one, now, 0).state)

  test('is not proved by figures from before its listeners closed', () => {
    const parent = parentOf(0, 900_000)
    const old = { mergedAt: 201 }
    const seen = states(
      parent,
      [trace(1), 0],
      [trace(3, old), 2_000],
      // Its child adds the figures once more before it tells it to close its listeners.
      [trace(5), 4_000],
      [trace(7), 6_000],
    )
    expect(seen).toEqual(['alive', 'alive', 'alive', 'empty'])
  })

  test('takes connections while the child starts', () => {
    const parent = parentOf(0, 5_000)
    const starting = { age: { current: 80, all: 180, isUp: false } }
    expect(states(parent, [trace(80, starting), 0], [trace(80, starting), 90_000])).toEqual([
      'alive',
      'alive',
    ])
  })

  test('has not finished work that may have been killed by now', () => {
    const parent = parentOf(0, 10_000)
    const busy = { connections: 1, active: new Map([['web', 1]]) }
    expect(parent.seen(trace(2, busy), 0, 0)).toMatchObject({ state: 'alive', active: 1 })
    const cut = { connections: 1, active: new Map([['web', 0]]) }
    expect(parent.seen(trace(9.5, cut), 7_500, 0)).toMatchObject({ state: 'alive' })
    expect(parent.seen(trace(9.5, cut), 7_500, 0).active).toBeUndefined()
    expect(parent.seen(trace(12), 10_000, 0).state).toBe('ended')
  })

  test('has not finished work that is cut because its child is replaced', () => {
    const parent = parentOf(0, 900_000)
    const busy = { connections: 1, active: new Map([['web', 1]]) }
    expect(parent.seen(trace(5, busy), 0, 0)).toMatchObject({ state: 'alive', active: 1 })
    // A connection of ours to the child outlives its place: it has let go of the old figures by then.
    const cut = { connections: 1, mergedAt: 105 }
    expect(parent.seen(trace(5, cut), 200, 0)).toMatchObject({ state: 'alive', active: undefined })
  })

  test('does not exist, and is not waited for, once the child is long up', () => {
    const parent = parentOf(6, 900_000)
    expect(states(parent, [trace(5_000, { mergedAt: 5_100 }), 0])).toEqual(['ended'])
  })

  test('is there while its uptime is in that of a child that took long to start', () => {
    const parent = parentOf(6, 900_000)
    expect(states(parent, [trace(5_000), 0])).toEqual(['alive'])
  })

  test('that was empty is not busy again by load in the two figures', () => {
    const parent = parentOf(0, 900_000)
    const noise = { active: new Map([['web', 3]]) }
    const seen = states(
      parent,
      [trace(1), 0],
      [trace(3), 2_000],
      [trace(4), 3_000],
      [trace(5, noise), 4_000],
    )
    expect(seen).toEqual(['alive', 'alive', 'empty', 'empty'])
    const other = {
      active: new Map([
        ['web', 0],
        ['api', 2],
      ]),
    }
    expect(parent.seen(trace(6, other), 5_000, 0)).toMatchObject({ state: 'alive', active: 2 })
  })
})
