import { carryOut, startDrain, type PlannedChange } from 'drainable'
import { planChanges, type DesiredMember, type PlanOptions } from 'drainable/endpoints'
import { callContext, type AdminState, type MemberRef } from 'drainable/provider'
import { fakeClock, fakeProvider, type FakeProvider } from 'drainable/testing'
import { describe, expect, test } from 'vitest'

const web = (member: string): MemberRef => ({ pool: 'web', member })

function setUp(...members: string[]) {
  const clock = fakeClock()
  const lb = fakeProvider({ pools: { web: members }, clock })
  return { clock, lb }
}

type SetUp = ReturnType<typeof setUp>

/** What is wanted of members by name; the others have no endpoint. */
async function planOf(
  { lb, clock }: SetUp,
  wanted: Record<string, DesiredMember['state'] | 'dead'>,
  options: Partial<PlanOptions> = {},
) {
  const context = callContext({ clock })
  const { capabilities } = await lb.describe(context)
  const snapshot = await lb.observe('all', context)
  const desired = Object.entries(wanted).map(([member, to]): DesiredMember => {
    const found = snapshot.readings.find(({ ref }) => ref.member === member)
    const address = found?.present === true ? found.address : undefined
    const at =
      address === undefined ? { address: `198.51.100.${member.length}`, port: 80 } : { address }
    const state = to === 'dead' ? ({ state: 'drain', serving: false } as const) : { state: to }
    return { pool: 'web', member, ...at, ...state }
  })
  return planChanges(desired, snapshot, {
    pools: ['web'],
    owns: () => true,
    capabilities,
    idle: () => true,
    ...options,
  })
}

function states(lb: FakeProvider, ...members: string[]): (AdminState | 'gone')[] {
  return members.map((member) => lb.state(web(member)))
}

describe('a hold', () => {
  test('is a drain to its verdict, and many run at the same time', async () => {
    const at = setUp('a', 'b', 'c', 'd')
    const ends = ['a', 'b', 'c'].map((member) => at.lb.occupy(web(member)))
    const plan = await planOf(at, { a: 'drain', b: 'drain', c: 'drain', d: 'serve' })
    const carried = carryOut(at.lb, plan, { clock: at.clock, timeout: '1m' })
    await at.clock.advance(100)
    expect(states(at.lb, 'a', 'b', 'c')).toEqual(['drain', 'drain', 'drain'])
    await at.clock.advance(10_000)
    for (const end of ends) end()
    const { steps } = await at.clock.runUntil(carried)
    expect(steps.map(({ outcome }) => outcome)).toEqual(['done', 'done', 'done'])
    expect(steps.map(({ report }) => report?.members[0]?.verifiedIdle)).toEqual([true, true, true])
    expect(at.clock.now()).toBeLessThan(20_000)
  })

  test('that is not idle in time stays held, and reports that', async () => {
    const at = setUp('a', 'b')
    at.lb.occupy(web('a'))
    const plan = await planOf(at, { a: 'drain', b: 'serve' })
    const { steps } = await at.clock.runUntil(
      carryOut(at.lb, plan, { clock: at.clock, timeout: '5s' }),
    )
    expect(steps).toMatchObject([{ outcome: 'failed', error: { code: 'DRAIN_TIMEOUT' } }])
    expect(states(at.lb, 'a')).toEqual(['drain'])
  })

  test.each([2, 5])(
    'of a member whose endpoint is gone goes below keepReady %d',
    async (keepReady) => {
      const at = setUp('live', 'dead', 'gone')
      const plan = await planOf(at, { live: 'serve', dead: 'dead' }, { keepReady })
      const { steps } = await at.clock.runUntil(carryOut(at.lb, plan, { clock: at.clock }))
      expect(steps.map(({ outcome }) => outcome)).toEqual(['done', 'done'])
      expect(states(at.lb, 'live', 'dead', 'gone')).toEqual(['ready', 'maint', 'maint'])
    },
  )

  test('of such a member waits if the last serving one was taken meanwhile', async () => {
    const at = setUp('live', 'dead')
    const plan = await planOf(at, { live: 'serve', dead: 'dead' }, { keepReady: 2 })
    at.lb.setBehind(web('live'), 'maint')
    const { steps } = await at.clock.runUntil(carryOut(at.lb, plan, { clock: at.clock }))
    expect(steps).toMatchObject([{ outcome: 'failed', error: { code: 'POOL_AT_MINIMUM' } }])
    expect(states(at.lb, 'dead')).toEqual(['ready'])
  })

  test('below the floor of the plan is refused if another was taken since', async () => {
    const at = setUp('a', 'b', 'c')
    const plan = await planOf(at, { a: 'drain', b: 'serve', c: 'serve' }, { keepReady: 2 })
    at.lb.setBehind(web('c'), 'drain')
    const { steps } = await at.clock.runUntil(carryOut(at.lb, plan, { clock: at.clock }))
    expect(steps).toMatchObject([{ outcome: 'failed', error: { code: 'POOL_AT_MINIMUM' } }])
    expect(states(at.lb, 'a')).toEqual(['ready'])
  })
})

describe('a restore', () => {
  test('is the same as ready(): out of maint by way of drain', async () => {
    const at = setUp('a', 'b')
    at.lb.setBehind(web('a'), 'maint')
    const plan = await planOf(at, { a: 'serve', b: 'serve' })
    const { steps } = await at.clock.runUntil(carryOut(at.lb, plan, { clock: at.clock }))
    expect(steps).toMatchObject([{ outcome: 'done', change: { kind: 'restore' } }])
    expect(states(at.lb, 'a')).toEqual(['ready'])
    const sent = at.lb.requests.flatMap(({ changes = [] }) => changes)
    expect(sent).toMatchObject([
      { kind: 'restore', expect: 'maint', to: 'drain' },
      { kind: 'restore', expect: 'drain', to: 'ready' },
    ])
  })

  test('does not wait for a slow drain of the same plan', async () => {
    const at = setUp('a', 'b', 'c')
    at.lb.setBehind(web('b'), 'drain')
    at.lb.occupy(web('a'))
    const plan = await planOf(at, { a: 'drain', b: 'serve', c: 'serve' })
    const carried = carryOut(at.lb, plan, { clock: at.clock, timeout: '1m' })
    await at.clock.advance(500)
    expect(states(at.lb, 'a', 'b')).toEqual(['drain', 'ready'])
    await at.clock.runUntil(carried)
  })

  test('ends the drain of an earlier step when a pod comes back', async () => {
    const at = setUp('a', 'b')
    at.lb.occupy(web('a'))
    const hold = await planOf(at, { a: 'drain', b: 'serve' })
    const first = carryOut(at.lb, hold, { clock: at.clock, timeout: '1m' })
    await at.clock.advance(500)
    const back = await planOf(at, { a: 'serve', b: 'serve' })
    const second = await at.clock.runUntil(carryOut(at.lb, back, { clock: at.clock }))
    expect(second.steps).toMatchObject([{ outcome: 'done' }])
    const { steps } = await at.clock.runUntil(first)
    expect(steps).toMatchObject([{ outcome: 'failed', error: { code: 'DRAIN_OVERRULED' } }])
    expect(states(at.lb, 'a')).toEqual(['ready'])
  })
})

describe('a removal', () => {
  async function held(at: SetUp) {
    at.lb.setBehind(web('a'), 'maint')
    return planOf(at, { b: 'serve' })
  }

  test('follows a verdict of its own', async () => {
    const at = setUp('a', 'b')
    const plan = await held(at)
    expect(plan.changes).toMatchObject([{ kind: 'remove' }])
    const end = at.lb.occupy(web('a'))
    const carried = carryOut(at.lb, plan, { clock: at.clock, timeout: '1m' })
    await at.clock.advance(20_000)
    expect(states(at.lb, 'a')).toEqual(['maint'])
    end()
    const { steps } = await at.clock.runUntil(carried)
    expect(steps).toMatchObject([{ outcome: 'done', report: { outcome: 'removed' } }])
    expect(states(at.lb, 'a')).toEqual(['gone'])
  })

  test('is not done without a verdict in time', async () => {
    const at = setUp('a', 'b')
    const plan = await held(at)
    at.lb.occupy(web('a'))
    const { steps } = await at.clock.runUntil(
      carryOut(at.lb, plan, { clock: at.clock, timeout: '5s' }),
    )
    expect(steps).toMatchObject([{ outcome: 'failed', error: { code: 'DRAIN_TIMEOUT' } }])
    expect(states(at.lb, 'a')).toEqual(['maint'])
  })
})

describe('two steps that remove one member', () => {
  test('are both done, the second one too', async () => {
    const at = setUp('a', 'b')
    at.lb.setBehind(web('a'), 'maint')
    const plan = await planOf(at, { b: 'serve' })
    const both = [carryOut(at.lb, plan, { clock: at.clock })]
    await at.clock.advance(500)
    both.push(carryOut(at.lb, plan, { clock: at.clock }))
    const found = await at.clock.runUntil(Promise.all(both))
    expect(found.flatMap(({ steps }) => steps.map(({ outcome }) => outcome))).toEqual([
      'done',
      'done',
    ])
    expect(states(at.lb, 'a')).toEqual(['gone'])
  })
})

describe('each step on its own', () => {
  test.each<[string, 'a' | 'b', DesiredMember['state']]>([
    ['hold', 'a', 'drain'],
    ['restore', 'b', 'serve'],
    ['removal', 'b', 'absent'],
  ])('a %s leaves a member alone that was replaced since', async (_kind, member, to) => {
    const at = setUp('a', 'b', 'c')
    at.lb.setBehind(web('b'), 'maint')
    const before = states(at.lb, member)
    const rest = member === 'a' ? { b: 'drain', c: 'serve' } : { a: 'serve', c: 'serve' }
    const plan = await planOf(at, { ...rest, [member]: to } as Record<
      string,
      DesiredMember['state']
    >)
    expect(plan.changes).toHaveLength(1)
    at.lb.setIdentity(web(member), 'another machine')
    const { steps } = await at.clock.runUntil(carryOut(at.lb, plan, { clock: at.clock }))
    expect(steps).toMatchObject([
      { outcome: 'failed', error: { code: 'CONFLICT', retryable: true } },
    ])
    expect(states(at.lb, member)).toEqual(before)
    expect(at.lb.requests.filter(({ verb }) => verb === 'apply')).toEqual([])
  })

  test('does not stop others when it is refused', async () => {
    const at = setUp('a', 'b', 'c')
    const plan = await planOf(at, { a: 'drain', b: 'serve', new: 'serve' })
    at.lb.setBehind(web('c'), 'gone')
    const { steps } = await at.clock.runUntil(carryOut(at.lb, plan, { clock: at.clock }))
    const found = steps.map(
      ({ change, outcome }) => `${change.ref.member} ${change.kind} ${outcome}`,
    )
    expect(found.sort()).toEqual(['a hold done', 'c hold failed', 'new add done'])
    expect(states(at.lb, 'a', 'new')).toEqual(['maint', 'ready'])
  })

  test('that adds a member says why the balancer refused', async () => {
    const at = setUp('a')
    const plan = await planOf(at, { a: 'serve', new: 'serve' })
    at.lb.failNext('reject', { verb: 'apply' })
    const { steps } = await at.clock.runUntil(carryOut(at.lb, plan, { clock: at.clock }))
    expect(steps).toMatchObject([{ outcome: 'failed', change: { kind: 'add' } }])
    expect(steps[0]?.error?.message).not.toBe('')
  })
})

describe('the call', () => {
  test('rejects with the reason of an abort, and leaves members held', async () => {
    const at = setUp('a', 'b')
    at.lb.occupy(web('a'))
    const plan = await planOf(at, { a: 'drain', b: 'serve' })
    const stop = new AbortController()
    const carried = carryOut(at.lb, plan, { clock: at.clock, signal: stop.signal, timeout: '1m' })
    const ended = expect(carried).rejects.toBe('enough')
    await at.clock.advance(500)
    stop.abort('enough')
    await at.clock.runUntil(ended)
    expect(states(at.lb, 'a')).toEqual(['drain'])
  })

  test('asks nothing for an empty plan', async () => {
    const { lb, clock } = setUp('a')
    expect(await carryOut(lb, { steps: [] }, { clock })).toEqual({ steps: [] })
    expect(lb.requests).toEqual([])
  })

  test('begins all of its changes with one look', async () => {
    const names = Array.from({ length: 20 }, (_, i) => `m${i}`)
    const at = setUp(...names, 'stays')
    const plan = await planOf(at, { stays: 'serve' })
    const before = at.lb.requests.length
    const carried = carryOut(at.lb, plan, { clock: at.clock })
    await at.clock.advance(0)
    const calls = at.lb.requests.slice(before).map(({ verb }) => verb)
    expect(calls.filter((verb) => verb === 'observe').length).toBeLessThanOrEqual(2)
    expect(calls.filter((verb) => verb === 'apply')).toHaveLength(1)
    await at.clock.runUntil(carried)
  })

  test.each([
    [{ hold: 'maint' }, 'hold: the plan sets this already'],
    [{ keepReady: 0, until: 'removed' }, 'until, keepReady: the plan sets this already'],
    [
      { tickets: new Map() },
      'tickets: the plan sets this already, or carryOut() keeps no ticket for it',
    ],
    [{ tiemout: '5s' }, 'tiemout'],
  ])('refuses %j before anything is asked', async (options, message) => {
    const { lb } = setUp('a')
    await expect(carryOut(lb, { steps: [] }, options as never)).rejects.toThrow(message)
    expect(lb.requests).toEqual([])
  })

  test.each<[unknown, string]>([
    [undefined, 'carryOut(): plan'],
    [{ changes: [] }, 'steps'],
    [{ steps: [{ change: { kind: 'hold' }, reason: '' }] }, 'steps[0].change.ref'],
    [{ steps: [{ change: { kind: 'open', ref: web('a') }, reason: '' }] }, 'steps[0].change.kind'],
  ])('refuses what is not a plan: %#', async (plan, message) => {
    const { lb } = setUp('a')
    await expect(carryOut(lb, plan as never)).rejects.toThrow(message)
  })

  test('refuses terminate as part of a plan', async () => {
    const at = setUp('a')
    const step: PlannedChange = { change: { kind: 'terminate', ref: web('a') }, reason: 'mine' }
    const { steps } = await carryOut(at.lb, { steps: [step] }, { clock: at.clock })
    expect(steps).toMatchObject([{ outcome: 'failed', error: { code: 'INVALID_OPTIONS' } }])
  })

  test('leaves a drain of this process beside it alone', async () => {
    const at = setUp('a', 'b')
    const mine = startDrain(at.lb, web('a'), { clock: at.clock })
    await at.clock.runUntil(mine.done)
    at.lb.setBehind(web('a'), 'ready')
    const plan = await planOf(at, { a: 'drain', b: 'serve' })
    const { steps } = await at.clock.runUntil(carryOut(at.lb, plan, { clock: at.clock }))
    expect(steps.every(({ outcome }) => outcome === 'done')).toBe(true)
    await mine.release()
  })
})
