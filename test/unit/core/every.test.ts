import { startDrain, watch, type DrainEvent } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { describe, expect, it } from 'vitest'

const web1 = { pool: 'web', member: 'web1' }

async function logged(every: '5s' | undefined): Promise<readonly DrainEvent[]> {
  const clock = fakeClock()
  const lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock })
  const end = lb.occupy(web1)
  const events: DrainEvent[] = []
  const run = startDrain(lb, web1, { clock, timeout: '1m', every })
  const reading = (async () => {
    for await (const event of run) events.push(event)
  })()
  await clock.advance(20_000)
  end()
  await clock.advance(20_000)
  await run.release()
  await reading
  await lb.close()
  return events
}

const loads = (events: readonly DrainEvent[]): readonly number[] =>
  events.flatMap((event) => (event.type === 'load' ? [Date.parse(event.at)] : []))

describe('the option every', () => {
  it('keeps load events of one member that far apart', async () => {
    const times = loads(await logged('5s'))
    expect(times.length).toBeGreaterThan(3)
    const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0))
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(5_000)
  })

  it('lets every load event through when it is not given', async () => {
    expect(loads(await logged(undefined)).length).toBeGreaterThan(15)
  })

  it('leaves out nothing but load events', async () => {
    const rest = (events: readonly DrainEvent[]): readonly string[] =>
      events.flatMap(({ type }) => (type === 'load' ? [] : [type]))
    expect(rest(await logged('5s'))).toEqual(rest(await logged(undefined)))
  })

  it('refuses a bare number of seconds', () => {
    const lb = fakeProvider({ pools: { web: ['web1'] } })
    expect(() => watch(lb, web1, { every: 5 })).toThrow(/every/)
  })
})
