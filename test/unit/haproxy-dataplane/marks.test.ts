import { ready, restore, startDrain, type Ticket } from 'drainable'
import type { DrainableProvider } from 'drainable/provider'
import { startFake, type DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { change, connect, leaveDrained, present } from '../../support/dataplane.js'

const WEB1 = { pool: 'web', member: 'web1' }
const DURABLE = { durable: true, maintCuts: false } as const
const POOLS = {
  web: [
    { name: 'web1', weight: 7 },
    { name: 'web2', weight: 9 },
  ],
}

/** The words of web1 in the configuration file. */
const lineOf = ({ config }: DataplaneFake): string => /server web1 .*/.exec(config)?.[0] ?? ''

/** A drain by a process that then dies. */
async function diesDraining(fake: DataplaneFake, options = {}): Promise<Ticket> {
  await using lb = connect(fake, { ...DURABLE, ...options })
  return await leaveDrained(lb)
}

/** Open at run time, while the file keeps `disabled weight 0`. */
async function openByHand(fake: DataplaneFake): Promise<void> {
  await fake.run('set server web/web1 weight 7')
  await fake.run('set server web/web1 state ready')
}

/** In a process that runs with the marks of a file of before, ready() opens it for good. */
async function opensMarked(fake: DataplaneFake, lb: DrainableProvider): Promise<void> {
  await fake.run('set server web/web1 weight 0')
  await fake.run('set server web/web1 state maint')
  await ready(lb, WEB1, { timeout: '20s' })
  await expectOpen(fake, 7)
}

/** Whether it serves, now and after a reload by any client. */
async function expectOpen(fake: DataplaneFake, weight: number): Promise<void> {
  await using eyes = connect(fake)
  expect(await present(eyes, WEB1)).toMatchObject({ own: 'ready', serves: true, weight })
  expect(lineOf(fake)).toContain(`weight ${weight}`)
  await fake.reload()
  expect(await present(eyes, WEB1)).toMatchObject({ own: 'ready', serves: true, weight })
}

describe.concurrent('a mark of a durable drain', () => {
  const REMAINS: readonly [string, (fake: DataplaneFake) => Promise<unknown>][] = [
    ['as it was', () => Promise.resolve()],
    ['after a reload by any client', (fake) => fake.reload()],
    ['after ready by hand', (fake) => fake.run('set server web/web1 state ready')],
    [
      'after ready by hand and a reload',
      async (fake) => {
        await fake.run('set server web/web1 state ready')
        await fake.reload()
      },
    ],
    ['after ready and a weight by hand', openByHand],
  ]

  test.each(REMAINS)('%s is opened by ready()', async (_what, meddle) => {
    const pools = { web: ['web1', 'web2'].map((name) => ({ name, weight: 7 })) }
    await using fake = await startFake({ pools })
    await diesDraining(fake)
    await meddle(fake)
    await using lb = connect(fake, DURABLE)
    await ready(lb, WEB1, { timeout: '60s' })
    await expectOpen(fake, 7)
  })

  test.each(REMAINS.slice(0, 3).concat(REMAINS.slice(4)))(
    '%s is taken back by its ticket',
    async (_what, meddle) => {
      await using fake = await startFake({ pools: POOLS })
      const ticket = await diesDraining(fake)
      await meddle(fake)
      await using lb = connect(fake, DURABLE)
      expect((await restore(lb, ticket)).outcome).toBe('restored')
      await expectOpen(fake, 7)
    },
  )

  test('is undone if only the process still runs with weight 0', async () => {
    await using fake = await startFake({ pools: POOLS })
    const ticket = await diesDraining(fake)
    await using lb = connect(fake, DURABLE)
    await restore(lb, ticket)
    expect(lineOf(fake)).toContain('weight 7')
    // as a process that was started with the file of before that
    await fake.run('set server web/web1 weight 0')
    await fake.run('set server web/web1 state maint')
    expect(await restore(lb, ticket)).toMatchObject({ outcome: 'restored' })
    await expectOpen(fake, 7)
  })

  test('is undone without a ticket if only the process still runs with weight 0', async () => {
    await using fake = await startFake({ pools: POOLS })
    await using lb = connect(fake, DURABLE)
    const ticket = await leaveDrained(lb)
    {
      await using other = connect(fake, DURABLE)
      await restore(other, ticket)
    }
    expect(lineOf(fake)).toContain('weight 7')
    // as a process that a reload has started with the file of before that
    await opensMarked(fake, lb)
  })

  test('that a reload has from the file of before the undo is taken back', async () => {
    await using fake = await startFake({ pools: POOLS })
    await using lb = connect(fake, { ...DURABLE, oldWorkers: 'accept' })
    const run = startDrain(lb, WEB1, { timeout: '60s' })
    expect((await run.done).outcome).toBe('idle')
    expect((await run.restore()).outcome).toBe('restored')
    // set by another client in the process in which it was undone: not ours to take back
    await fake.run('set server web/web1 weight 0')
    await expect(ready(lb, WEB1, { timeout: '10s' })).rejects.toThrow('weight')
    await fake.reload()
    await opensMarked(fake, lb)
  })

  test('of another client is left to it by the ticket, with the reason', async () => {
    await using fake = await startFake({ pools: POOLS })
    let ticket: Ticket | undefined
    await using plain = connect(fake, { maintCuts: false })
    const options = { hold: 'drain', seal: false, timeout: '60s' } as const
    const onTicket = (next: Ticket | null): void => void (ticket = next ?? ticket)
    const run = startDrain(plain, WEB1, { ...options, onTicket })
    expect((await run.done).outcome).toBe('idle')
    await run.release()
    await diesDraining(fake)
    await openByHand(fake)
    await using lb = connect(fake, DURABLE)
    const report = await restore(lb, ticket!)
    expect(report.outcome).toBe('overruled')
    expect(report.members[0]!.error!.message).toContain("makes it 'maint' at the next reload")
  })

  test.each(REMAINS)('%s is not called ready if not durable', async (_what, meddle) => {
    await using fake = await startFake({ pools: POOLS })
    await diesDraining(fake)
    await meddle(fake)
    await using lb = connect(fake)
    const { serves } = await present(lb, WEB1)
    await expect(ready(lb, WEB1, { timeout: '60s' })).rejects.toThrow('durable: true')
    expect((await present(lb, WEB1)).serves).toBe(serves)
  })

  test.each(REMAINS.slice(0, 2).concat(REMAINS.slice(4)))(
    '%s is not called restored if not durable',
    async (_w, meddle) => {
      await using fake = await startFake({ pools: POOLS })
      const ticket = await diesDraining(fake)
      await meddle(fake)
      await using lb = connect(fake)
      const report = await restore(lb, ticket)
      expect(report.outcome).toBe('refused')
      expect(report.members[0]!.error!.message).toContain('durable: true')
    },
  )

  test('of servers with unlike weights needs its ticket to be undone', async () => {
    await using fake = await startFake({
      pools: { web: [...POOLS.web, { name: 'web3', weight: 5 }] },
    })
    await diesDraining(fake)
    await fake.reload()
    await using lb = connect(fake, DURABLE)
    await expect(ready(lb, WEB1, { timeout: '60s' })).rejects.toThrow("the drain's ticket")
  })
})

describe.concurrent('a mark in the file beside a server that is ready', () => {
  const config = `defaults
backend web
  server web1 127.0.0.1:8001 disabled weight 0
  server web2 127.0.0.1:8002 weight 7
`

  test('is left by the undo of a drain that found it there', async () => {
    await using fake = await startFake({ config })
    await openByHand(fake)
    await using lb = connect(fake, DURABLE)
    const run = startDrain(lb, WEB1, { timeout: '60s' })
    expect((await run.done).outcome).toBe('idle')
    expect((await run.restore()).outcome).toBe('restored')
    expect(fake.config).toBe(config)
    expect(await present(lb, WEB1)).toMatchObject({ own: 'ready', stored: 'maint', serves: true })
  })

  test('gets the weight that the server runs with, and is never taken away', async () => {
    await using fake = await startFake({ config })
    await fake.run('set server web/web1 weight 3')
    await fake.run('set server web/web1 state ready')
    await using lb = connect(fake, DURABLE)
    const sent = fake.requests.length
    await ready(lb, WEB1, { timeout: '60s' })
    expect(lineOf(fake)).toBe('server web1 127.0.0.1:8001 enabled weight 3')
    const puts = fake.requests.slice(sent).filter(({ line }) => line.startsWith('PUT'))
    expect(puts.map(({ body }) => JSON.stringify(body))).not.toContain('"drain"')
  })
})

describe.concurrent('a server of weight 0', () => {
  const pools = { web: [{ name: 'web1', weight: 0 }, 'web2'] }

  test.each([
    ['at run time', {}],
    ['durably', DURABLE],
  ])('that is drained %s and restored is unchanged', async (_how, options) => {
    await using fake = await startFake({ pools })
    await using lb = connect(fake, { maintCuts: false, ...options })
    const states = async () => {
      const [, , row = ''] = (await fake.run('show servers state web')).split('\n')
      return row.split(' ').slice(5, 8) // operational state, admin mask, weight
    }
    const before = await states()
    const run = startDrain(lb, WEB1, { timeout: '60s' })
    expect((await run.done).outcome).toBe('idle')
    expect((await present(lb, WEB1)).own).toBe('maint')
    expect((await run.restore()).outcome).toBe('restored')
    expect(await states()).toEqual(before)
    expect(lineOf(fake)).not.toContain(' disabled')
  })

  test('set at run time is not called ready', async () => {
    await using fake = await startFake()
    await fake.run('set server web/web1 weight 0')
    await using lb = connect(fake, DURABLE)
    await expect(ready(lb, WEB1, { timeout: '60s' })).rejects.toThrow('weight')
    expect((await present(lb, WEB1)).own).toBe('drain')
  })
})

test.each(['drain', 'maint'] as const)(
  'a durable drain of a server in %s leaves no mark',
  async (found) => {
    await using fake = await startFake({ pools: POOLS })
    await fake.setBehind(WEB1, found)
    const config = fake.config
    await using lb = connect(fake, DURABLE)
    const run = startDrain(lb, WEB1, { timeout: '60s' })
    expect((await run.done).outcome).toBe('idle')
    expect((await run.restore()).outcome).toBe('restored')
    expect((await present(lb, WEB1)).own).toBe(found)
    const marks = / weight 0| disabled/
    expect(lineOf(fake)).not.toMatch(marks)
    expect(config).not.toMatch(marks)
  },
)

test('no line is written without its weight', async () => {
  await using fake = await startFake()
  await using lb = connect(fake, DURABLE)
  await change(lb, { kind: 'hold', ref: WEB1, to: 'maint' })
  await change(lb, { kind: 'restore', ref: WEB1, expect: 'maint', to: 'ready' })
  const written = fake.requests.filter(({ line }) => /^PUT .*configuration/.test(line))
  expect(written.length).toBeGreaterThan(1)
  for (const { body } of written) expect(body).toHaveProperty('weight')
})
