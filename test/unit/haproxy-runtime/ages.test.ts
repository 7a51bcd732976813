import { type LoadEvent, startDrain, type Ticket } from 'drainable'
import type { LoadScope } from 'drainable/provider'
import { fakeClock } from 'drainable/testing'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { oldestStreams } from '../../../src/adapters/haproxy-runtime/codec/streams.js'
import { change, context, type Rig, rig, WEB1, WEB2 } from './rig.js'

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(() => void vi.useRealTimers())

/** The fake's time alone. */
function passes(ms: number): void {
  vi.setSystemTime(Date.now() + ms)
}

/** Looks at one member, `at` by the clock of the calls. */
async function look({ lb }: Rig, at: number, ref = WEB1): Promise<LoadScope | undefined> {
  const clock = { ...context().clock, now: () => at }
  const { readings } = await lb.observe([ref], { ...context(), clock })
  return readings[0]?.scopes[0]
}

function asked({ fake }: Rig): number {
  return fake.requests.filter((request) => JSON.stringify(request).includes('show sess')).length
}

test('a drain that waits long is told the age of its oldest work', async () => {
  await using at = await rig()
  await at.fake.occupy(WEB1)
  passes(7_440_000)
  await at.fake.occupy(WEB1)
  await change(at.lb, { kind: 'hold', ref: WEB1, to: 'drain' })
  expect(await look(at, 0)).not.toHaveProperty('oldest')
  expect(await look(at, 9_999)).not.toHaveProperty('oldest')
  expect(asked(at)).toBe(0)
  expect(await look(at, 10_000)).toMatchObject({ active: 2, oldest: 7_440_000 })
  expect(asked(at)).toBe(1)
})

test('the age grows between two questions, which are rare', async () => {
  await using at = await rig()
  await at.fake.occupy(WEB1)
  passes(60_000)
  await change(at.lb, { kind: 'hold', ref: WEB1, to: 'drain' })
  await look(at, 0)
  for (const now of [10_000, 11_000, 11_999]) {
    expect(await look(at, now)).toMatchObject({ oldest: now - 10_000 + 60_000 })
  }
  expect(asked(at)).toBe(1)
  await look(at, 12_000)
  expect(asked(at)).toBe(2)
})

test('the age of ended work is not told', async () => {
  await using at = await rig()
  const end = await at.fake.occupy(WEB1)
  passes(60_000)
  await at.fake.occupy(WEB1)
  await change(at.lb, { kind: 'hold', ref: WEB1, to: 'drain' })
  await look(at, 0)
  expect(await look(at, 10_000)).toMatchObject({ oldest: 60_000 })
  await end()
  expect(await look(at, 10_001)).not.toHaveProperty('oldest')
  expect(await look(at, 12_001)).toMatchObject({ active: 1, oldest: 0 })
})

test('no age is asked for without a drain', async () => {
  await using at = await rig()
  await at.fake.occupy(WEB1)
  await look(at, 0)
  expect(await look(at, 60_000)).not.toHaveProperty('oldest')
  expect(asked(at)).toBe(0)
})

test('one question tells the ages for two waiting members', async () => {
  await using at = await rig()
  await at.fake.occupy(WEB1)
  passes(5_000)
  await at.fake.occupy(WEB2)
  passes(5_000)
  for (const ref of [WEB1, WEB2]) await change(at.lb, { kind: 'hold', ref, to: 'drain' })
  const both = async (at_: number): Promise<(number | undefined)[]> => {
    const clock = { ...context().clock, now: () => at_ }
    const { readings } = await at.lb.observe([WEB1, WEB2], { ...context(), clock })
    return readings.map(({ scopes }) => scopes[0]?.oldest)
  }
  await both(0)
  expect(await both(10_000)).toEqual([10_000, 5_000])
  expect(asked(at)).toBe(1)
})

test('a socket that may not list streams is asked once', async () => {
  await using at = await rig({ level: 'user' })
  await at.fake.occupy(WEB1)
  await at.fake.setBehind(WEB1, 'drain')
  await look(at, 0)
  for (const now of [10_000, 60_000, 600_000]) {
    expect(await look(at, now)).toMatchObject({ state: 'read', active: 1 })
  }
  expect(asked(at)).toBe(1)
})

test('a drain that times out and its events tell the age, its ticket not', async () => {
  const clock = fakeClock()
  await using at = await rig()
  await at.fake.occupy(WEB1)
  passes(7_440_000)
  const loads: LoadEvent[] = []
  let ticket: Ticket | undefined
  const run = startDrain(at.lb, WEB1, {
    timeout: '12s',
    clock,
    onTicket: (saved) => void (ticket = saved),
  })
  run.on('load', (event) => loads.push(event))
  let over = false
  void run.done.finally(() => (over = true))
  await expect
    .poll(async () => {
      await clock.advance(250)
      return over
    })
    .toBe(true)
  await run.release()
  expect(run.why()[0]?.text).toMatch(/^1 in flight, for 2 h 4 m/)
  expect(loads.at(-1)?.oldest).toBeGreaterThanOrEqual(7_440_000)
  expect(loads[0]?.oldest).toBeNull()
  expect(JSON.stringify(ticket)).not.toContain('oldest')
})

test.each([
  ['0s', 0],
  ['59s', 59_000],
  ['1m17s', 77_000],
  ['2h4m', 7_440_000],
  ['3d1h', 262_800_000],
  ['1h', 3_600_000],
])('an age of %s is %d ms', (text, ms) => {
  const line = `0x7f00: proto=tcpv4 src=127.0.0.1:1 fe=f be=web srv=web1 ts=00 epoch=0 age=${text} calls=1\n`
  expect([...oldestStreams(line).values()]).toEqual([ms])
})

test.each(['', '5', '1w', 's', '-1s'])('an age of %o is not told', (text) => {
  const line = `0x7f00: proto=tcpv4 src=127.0.0.1:1 fe=f be=web srv=web1 ts=00 age=${text} calls=1\n`
  expect([...oldestStreams(line)]).toEqual([])
})
