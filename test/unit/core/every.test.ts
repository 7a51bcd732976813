import { startDrain, watch, type DrainEvent } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { describe, expect, it } from 'vitest'

const web1 = { pool: 'web', member: 'web1' }

async function logged(every: '5s' | '1m' | undefined, seal = true): Promise<readonly DrainEvent[]> {
  const clock = fakeClock()
  const lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock })
  const end = lb.occupy(web1)
  const events: DrainEvent[] = []
  const run = startDrain(lb, web1, { clock, timeout: '1m', every, seal })
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

const lastLoad = (events: readonly DrainEvent[]): DrainEvent | undefined =>
  events.findLast(({ type }) => type === 'load')

describe('the option every', () => {
  it('keeps load events of one member that far apart', async () => {
    // Another phase or state is told at once.
    const draining = (await logged('5s')).filter(
      (event) => event.type === 'load' && event.phase === 'draining' && event.own === 'drain',
    )
    const times = loads(draining)
    expect(times.length).toBeGreaterThan(3)
    const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0))
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(5_000)
  })

  it.each(['5s', '1m'] as const)('shows at last what is left at idle, with %s', async (every) => {
    for (const seal of [true, false]) {
      const [all, some] = [await logged(undefined, seal), await logged(every, seal)]
      const [last, lastOfAll] = [lastLoad(some), lastLoad(all)]
      expect(last).toMatchObject({ phase: 'idle', own: seal ? 'maint' : 'drain', active: 0 })
      const bare = { at: '', scopes: [], deadline: null }
      expect({ ...last, ...bare }).toEqual({ ...lastOfAll, ...bare })
    }
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
