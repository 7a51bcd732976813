import { ready, restore, type Ticket } from 'drainable'
import { startFake, type DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect, leaveDrained, present, until, warm } from '../../support/dataplane.js'
import { ioClock } from '../../support/io-clock.js'

const WEB1 = { pool: 'web', member: 'web1' }
const POOLS = { web: ['web1', 'web2'].map((name) => ({ name, weight: 7 })) }
const DURABLE = { durable: true, maintCuts: false } as const

/** The ticket of a durable drain that is held. */
async function drained(fake: DataplaneFake): Promise<Ticket> {
  await using lb = connect(fake, DURABLE)
  const ticket = await leaveDrained(lb)
  return ticket
}

/** An undo whose process ends once it has sent its write of that number. */
async function dies(fake: DataplaneFake, ticket: Ticket, write: number, execute: boolean) {
  await using lb = connect(fake, DURABLE)
  const puts = (): number => fake.requests.filter(({ method }) => method === 'PUT').length
  const before = puts()
  const lift = fake.fail({ match: /^PUT/, how: 'silent', skip: write - 1, times: 1, execute })
  const stop = new AbortController()
  const undo = restore(lb, ticket, { signal: stop.signal }).catch(() => 'dead')
  await until(`write ${write}`, () => Promise.resolve(puts() - before >= write))
  stop.abort(new Error('killed'))
  expect(await undo).toBe('dead')
  await lift()
}

/** The maintenance, the weight, and the state: without a check it is opened straight from maint. */
const MOMENTS = [1, 2, 3].flatMap((write) => [true, false].map((execute) => ({ write, execute })))
type Moment = (typeof MOMENTS)[number]
const held = new Map<Moment, { readonly fake: DataplaneFake; readonly ticket: Ticket }>()

beforeAll(async () => {
  const hold = async (moment: Moment): Promise<void> => {
    const fake = await startFake({ pools: POOLS })
    held.set(moment, { fake, ticket: await drained(fake) })
  }
  await Promise.all(MOMENTS.map(hold))
}, 120_000)

afterAll(() => Promise.all([...held.values()].map(({ fake }) => fake.close())))

describe('a killed undo of a durable drain', () => {
  test.each(MOMENTS)('at write $write, executed $execute, leaves no mark', async (moment) => {
    const { fake, ticket } = held.get(moment)!
    await dies(fake, ticket, moment.write, moment.execute)
    await fake.reload()
    await using lb = connect(fake, DURABLE)
    await warm(fake)
    using clock = ioClock()
    const report = await clock.run(restore(lb, ticket, { clock }))
    if (report.outcome !== 'restored') {
      expect(String(report.members[0]!.error)).toContain('ready() opens it')
      await clock.run(ready(lb, WEB1, { timeout: '10m', clock }))
    }
    await using eyes = connect(fake) // by another clock
    const open = { own: 'ready', serves: true, weight: 7 }
    expect(await present(eyes, WEB1)).toMatchObject(open)
    await fake.reload()
    expect(await present(eyes, WEB1)).toMatchObject(open)
    expect(fake.config).not.toMatch(/server web1 .*(weight 0| disabled)/)
  })
})
