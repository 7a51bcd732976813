import { ready, startDrain } from 'drainable'
import type { Clock } from 'drainable/provider'
import { startFake, type DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { change, connect, context, warm } from '../../support/dataplane.js'
import { ioClock, type IoClock } from '../../support/io-clock.js'

const WEB1 = { pool: 'web', member: 'web1' }

/** An API whose answers all take this long, ms: a look is two answers. */
const SLOW = { latency: 2_000 }
/** One with 6,000 servers: the statistics take 1.74 s, everything else next to nothing, ms. */
const LARGE = { latency: 1, statsCost: 29, pools: { web: Array.from({ length: 60 }, name) } }
const LARGE_LOOK = 60 * LARGE.statsCost + 2 * LARGE.latency

function name(_: unknown, i: number): string {
  return `web${i + 1}`
}

const looks = ({ requests }: DataplaneFake): number =>
  requests.filter(({ path }) => path.includes('/stats/')).length

/** No two moments are the same, as with a real clock. */
function moving(clock: IoClock): Required<Clock> {
  let calls = 0
  return { ...clock, now: () => clock.now() + (calls += 1) / 1e6 }
}

describe('an API that answers after two seconds', () => {
  test('shows idle within six looks of the last byte', async () => {
    using clock = ioClock()
    await using fake = await startFake({ ...SLOW, clock: clock.latency })
    await using lb = connect(fake, { maintCuts: false })
    const end = await fake.occupy(WEB1)
    await using run = startDrain(lb, WEB1, { timeout: '20m', clock: moving(clock) })
    const last = { at: Infinity, looks: Infinity }
    clock.setTimeout(() => {
      Object.assign(last, { at: clock.now(), looks: looks(fake) })
      void end()
    }, 100_000)
    const report = await clock.run(run.done)
    expect(report.outcome).toBe('idle')
    expect(looks(fake) - last.looks).toBeLessThanOrEqual(6)
    // A pause of four looks before the first of them, and what lies between them.
    expect(clock.now() - last.at).toBeLessThanOrEqual((4 + 6) * 4_000)
  })

  test('is not asked again and again for its hard-stop-after', async () => {
    using clock = ioClock()
    await using fake = await startFake({ ...SLOW, clock: clock.latency })
    await using lb = connect(fake)
    for (let i = 0; i < 3; i++)
      await clock.run(lb.observe([WEB1], { ...context(), clock: moving(clock) }))
    const asked = fake.requests.filter(({ path }) => /reloads$|raw$/.test(path))
    expect(asked).toHaveLength(1)
  })
})

describe('an API with six thousand servers', () => {
  test('shows that one is idle within fifteen looks', async () => {
    using clock = ioClock()
    await using fake = await startFake({ ...LARGE, clock: clock.latency })
    await using lb = connect(fake, { maintCuts: false })
    await using run = startDrain(lb, WEB1, { timeout: '20m', clock: moving(clock) })
    expect((await clock.run(run.done)).outcome).toBe('idle')
    expect(looks(fake)).toBeLessThanOrEqual(15)
    expect(clock.now()).toBeLessThanOrEqual(15 * LARGE_LOOK)
  })

  test('is ready from maint in one change where it has no check', async () => {
    using clock = ioClock()
    await using fake = await startFake({ ...LARGE, clock: clock.latency })
    await fake.setBehind(WEB1, 'maint')
    await using lb = connect(fake)
    await clock.run(ready(lb, WEB1, { clock: moving(clock), waitHealthy: '30s' }))
    const sent = fake.requests.filter(({ method }) => method === 'PUT')
    expect(sent.map(({ body }) => body)).toEqual([{ admin_state: 'ready' }])
  })
})

describe.concurrent('a check of a server in maint', () => {
  const config = (line: string, more = ''): string =>
    `defaults\n  mode http\nbackend web\n  ${more}\n  server web1 127.0.0.1:8001 ${line}\n`
  const health = async (text: string): Promise<unknown> => {
    await using fake = await startFake({ config: text })
    await using lb = connect(fake)
    await warm(fake)
    await fake.setBehind(WEB1, 'maint')
    const [reading] = (await lb.observe([WEB1], context())).readings
    return reading?.present === true ? reading.health : undefined
  }

  test.each([
    ['none', config(''), 'unchecked'],
    ['one of its line', config('check'), 'unknown'],
    ['an agent', config('agent-check agent-port 9'), 'unknown'],
    ['one of its backend', config('', 'default-server check'), 'unknown'],
    ['none in a listen section', config('').replace('backend', 'listen'), 'unchecked'],
    ['one in a listen section', config('check').replace('backend', 'listen'), 'unknown'],
  ])('is told by the configuration: %s', async (_, text, is) => {
    expect(await health(text)).toBe(is)
  })

  test('is waited for in drain', async () => {
    await using fake = await startFake({ config: config('check') })
    await using lb = connect(fake)
    await fake.setBehind(WEB1, 'maint')
    await ready(lb, WEB1, { waitHealthy: '30s' })
    const sent = fake.requests.filter(({ method }) => method === 'PUT')
    expect(sent.map(({ body }) => body)).toEqual([
      { admin_state: 'drain' },
      { admin_state: 'ready' },
    ])
    expect((await change(lb, { kind: 'hold', ref: WEB1, to: 'drain' })).status).toBe('applied')
  })
})
