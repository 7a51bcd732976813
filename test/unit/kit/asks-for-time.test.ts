/** A product that asks to be left alone with Retry-After, through each adapter that speaks REST: the rule is kit/http's. */
import { startDrain } from 'drainable'
import { expect, test } from 'vitest'
import { ioClock, type IoClock } from '../../support/io-clock.js'
import { PRODUCTS } from './products.js'

const later = (clock: IoClock, ms: number): Promise<void> =>
  clock.run(new Promise<void>((resolve) => clock.setTimeout(resolve, ms)))

const asks = (seconds: number) =>
  ({ how: 'status', status: 503, headers: { 'retry-after': `${seconds}` } }) as const

test.each(PRODUCTS)('%s gets the 40 s that it asks for while a drain goes on', async (_, of) => {
  using clock = ioClock()
  await using fake = await of.start(clock)
  const { url, username, password } = fake
  await using lb = of.connect({ url, username, password })
  const run = startDrain(lb, of.ref, { clock, timeout: '2m', settle: '10s' })
  await later(clock, 500)
  const since = fake.requests.length
  const end = fake.fail(asks(40))
  await later(clock, 39_000)
  void end()
  // What was under way together; then none.
  expect(fake.requests.length - since).toBeLessThanOrEqual(2)
  expect((await clock.run(run.done)).outcome).toBe('idle')
  await clock.run(run.restore())
})

test.each(PRODUCTS)('%s that asks for an hour keeps no undo from its 30 s', async (_, of) => {
  using clock = ioClock()
  await using fake = await of.start(clock)
  const { url, username, password } = fake
  await using lb = of.connect({ url, username, password })
  const run = startDrain(lb, of.ref, { clock, timeout: '5m' })
  await clock.run(run.done)
  const end = fake.fail(asks(3_600))
  clock.setTimeout(() => void end(), 10_000)
  expect((await clock.run(run.restore())).outcome).toBe('restored')
})

const ASKED: unknown = expect.stringContaining('asked for no request for another')

test.each(PRODUCTS)('%s that asks for a minute is named with it by why()', async (_, of) => {
  using clock = ioClock()
  await using fake = await of.start(clock)
  const { url, username, password } = fake
  await using lb = of.connect({ url, username, password })
  const run = startDrain(lb, of.ref, { clock, timeout: '5m', settle: '10s' })
  await later(clock, 3_000)
  fake.fail({ ...asks(60), times: 1 })
  await later(clock, 30_000)
  expect(run.why().map(({ text }) => text)).toContainEqual(ASKED)
  await clock.run(run.restore())
})

test.each(PRODUCTS)('a drain waits little longer where %s asks for 2 s', async (_, of) => {
  using clock = ioClock()
  await using fake = await of.start(clock)
  const { url, username, password } = fake
  const timeOf = async (): Promise<number> => {
    await using lb = of.connect({ url, username, password })
    const begun = clock.now()
    const run = startDrain(lb, of.ref, { clock, timeout: '2m' })
    expect((await clock.run(run.done)).outcome).toBe('idle')
    const took = clock.now() - begun
    await clock.run(run.restore())
    return took
  }
  const quiet = await timeOf()
  fake.fail({ ...asks(2), match: of.change, times: 1 })
  const took = await timeOf()
  expect(took - quiet).toBeLessThan(5_000)
})
