import { ready, restore, startDrain, type Ticket } from 'drainable'
import type { DrainableProvider } from 'drainable/provider'
import { startFake, type DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { expect, test } from 'vitest'
import { connect, warm } from '../../support/dataplane.js'
import { ioClock, type IoClock } from '../../support/io-clock.js'

const MINUTE = 60_000
const WEEK = 7 * 24 * 60 * MINUTE
const EVERY = 12 * 60 * MINUTE
const CONFIG = `global
  hard-stop-after 20s
backend web
  mode http
${[1, 2, 3].map((n) => `  server web${n} 127.0.0.1:800${n} weight 10`).join('\n')}
`

/** Lets time pass, with a reload in each minute. */
function minutes(fake: DataplaneFake, clock: IoClock) {
  let next = MINUTE
  let stop = (): void => undefined
  const start = (): void => {
    stop = clock.setTimeout(() => {
      next += MINUTE
      void fake.reload()
      start()
    }, next - clock.now())
  }
  start()
  return {
    until: (at: number) =>
      clock.run(new Promise<void>((resolve) => clock.setTimeout(resolve, at - clock.now()))),
    /** Between two looks: a leap, with the reloads in it. */
    async leap(at: number): Promise<void> {
      stop()
      for (; next < at; next += MINUTE) await fake.reload()
      await this.until(at)
      start()
    },
    [Symbol.dispose]: () => stop(),
  }
}

/** A look in ten seconds: four in each second for a week are more than a test should take. */
function seldom(lb: DrainableProvider): DrainableProvider {
  return {
    specVersion: 1,
    name: lb.name,
    instance: lb.instance,
    async describe(ctx) {
      const { capabilities, ...info } = await lb.describe(ctx)
      return { ...info, capabilities: { ...capabilities, minInterval: 10_000 } }
    },
    observe: (refs, ctx) => lb.observe(refs, ctx),
    apply: (changes, ctx) => lb.apply(changes, ctx),
    close: () => lb.close(),
    [Symbol.asyncDispose]: () => lb.close(),
  }
}

test(
  'a week of durable drains with a reload every minute leaves no mark',
  { timeout: 120_000 },
  async () => {
    await using fake = await startFake({ config: CONFIG })
    await warm(fake)
    using clock = ioClock()
    using time = minutes(fake, clock)
    const options = { durable: true, maintCuts: false, oldWorkers: { within: '20s' } } as const
    let drains = 0
    for (let at = 30_000; at < WEEK; at += EVERY + 7_000) {
      await time.leap(at)
      const ref = { pool: 'web', member: `web${(drains % 3) + 1}` }
      const finish = await fake.occupy(ref)
      let ticket: Ticket | undefined
      {
        await using lb = seldom(connect(fake, options))
        const run = startDrain(lb, ref, {
          timeout: '10m',
          clock,
          onTicket: (t) => void (ticket = t),
        })
        clock.setTimeout(() => void finish(), 45_000)
        const { outcome } = await clock.run(run.done)
        expect([drains, outcome]).toEqual([drains, 'idle'])
        await time.until(clock.now() + 2 * MINUTE)
        if (drains % 2 === 0) expect((await clock.run(run.restore())).outcome).toBe('restored')
        await clock.run(run.release())
      }
      if (drains % 2 === 1) {
        await using other = seldom(connect(fake, options))
        if (drains % 4 === 1) await clock.run(restore(other, ticket!, { clock }))
        else await clock.run(ready(other, ref, { clock, timeout: '5m' }))
      }
      drains += 1
    }
    await time.leap(WEEK)
    expect(drains).toBe(14)
    expect(fake.config.replaceAll(' enabled', '')).toBe(CONFIG)
    const [, , ...rows] = (await fake.run('show servers state web')).trim().split('\n')
    expect(rows.map((row) => row.split(' ').slice(6, 8))).toEqual([1, 2, 3].map(() => ['0', '10']))
  },
)
