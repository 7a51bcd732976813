import { drain, restore, startDrain, type Ticket } from 'drainable'
import { startFake, type DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { change, connect, present, until } from '../../support/dataplane.js'
import { meddling } from '../../support/dataplane-meddling.js'

const WEB1 = { pool: 'web', member: 'web1' }
const API1 = { pool: 'api', member: 'api1' }
const POOLS = {
  web: [{ name: 'web1', check: true, address: '10.0.0.1', port: 80 }, 'web2'],
  api: [{ name: 'api1', track: 'web/web1', address: '10.0.0.1', port: 80 }, 'api2'],
}

/** HAProxy's admin mask of a server. */
async function maskOf(fake: DataplaneFake, { pool, member }: typeof WEB1): Promise<number> {
  const rows = (await fake.run(`show servers state ${pool}`)).split('\n')
  const row = rows.find((line) => line.split(' ')[3] === member)
  return Number(row?.split(' ')[6])
}

describe.concurrent('a server and its tracker', () => {
  test.each([
    ['2.9', {}],
    ['3.2', { maintCuts: false }],
    ['3.4', { maintCuts: false, durable: true }],
  ] as const)('are drained and opened in one call on %s with %o', async (version, options) => {
    await using fake = await startFake({ version, pools: POOLS })
    await using lb = connect(fake, options)
    const end = await fake.occupy(API1)
    await using run = startDrain(lb, { address: '10.0.0.1' }, { timeout: '60s' })
    await until('both drains', async () => {
      return [await maskOf(fake, WEB1), await maskOf(fake, API1)].every((mask) => mask & 0x0b)
    })
    await end()
    const report = await run.done
    expect(report.members.map(({ ref, outcome }) => `${ref.member} ${outcome}`).sort()).toEqual([
      'api1 idle',
      'web1 idle',
    ])
    expect((await run.restore()).outcome).toBe('restored')
    expect([await maskOf(fake, WEB1), await maskOf(fake, API1)]).toEqual([0, 0])
  })

  test('are opened by a ticket, in another process', async () => {
    await using fake = await startFake({ pools: POOLS })
    let ticket: Ticket | undefined
    await using first = connect(fake)
    await using run = startDrain(
      first,
      { address: '10.0.0.1' },
      { timeout: '60s', onTicket: (next) => void (ticket = next) },
    )
    expect((await run.done).outcome).toBe('idle')
    await run.release()
    await using lb = connect(fake)
    expect((await restore(lb, ticket!)).outcome).toBe('restored')
    expect([await maskOf(fake, WEB1), await maskOf(fake, API1)]).toEqual([0, 0])
  })

  test.each(['drain', 'maint'] as const)(
    'are judged by counts if the other is in %s by another client',
    async (state) => {
      await using fake = await startFake({ pools: POOLS })
      await fake.setBehind(WEB1, state)
      await using lb = connect(fake)
      const end = await fake.occupy(API1)
      await using run = startDrain(lb, API1, { timeout: '60s', keepReady: 0 })
      const reading = await present(lb, API1)
      expect(reading).toMatchObject({ own: state, inherited: state, sealed: false })
      expect(reading.setBy).toContain('web/web1')
      await end()
      const report = await run.done
      expect(report.members[0]).toMatchObject({ outcome: 'idle', sealed: false })
    },
  )
})

describe.concurrent('a server whose name does not resolve', () => {
  test('from the start is judged by its counts and not sealed', async () => {
    await using fake = await startFake()
    fake.setMask(WEB1, 0x20)
    await using lb = connect(fake, { maintCuts: false })
    const report = await drain(lb, WEB1, { timeout: '60s' })
    expect(report.members[0]).toMatchObject({ outcome: 'idle', sealed: false })
    expect(await maskOf(fake, WEB1)).toBe(0x20)
  })

  test('since its drain began is idle as soon as its work has ended', async () => {
    await using fake = await startFake()
    await using lb = connect(fake, { maintCuts: false, durable: false })
    const end = await fake.occupy(WEB1)
    await using run = startDrain(lb, WEB1, { timeout: '60s' })
    await until('the drain', async () => (await maskOf(fake, WEB1)) === 0x08)
    fake.setMask(WEB1, 0x28)
    await end()
    const report = await run.done
    expect(report.members[0]).toMatchObject({ outcome: 'idle', sealed: false })
  })

  test('is opened by an undo as soon as it resolves', async () => {
    await using fake = await startFake()
    await using lb = connect(fake, { maintCuts: false })
    const end = await fake.occupy(WEB1)
    await using run = startDrain(lb, WEB1, { timeout: '60s' })
    await until('the drain', async () => (await maskOf(fake, WEB1)) === 0x08)
    fake.setMask(WEB1, 0x28)
    const undo = run.restore()
    const looks = fake.requests.length
    await until('a look', () => Promise.resolve(fake.requests.length > looks + 6))
    // The name resolves. The undo may have come before.
    fake.setMask(WEB1, (now) => now & ~0x20)
    expect((await undo).outcome).toBe('restored')
    await end()
    expect(await maskOf(fake, WEB1)).toBe(0)
  })

  const UNDO = { kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' } as const

  // Masks 20, 21 and 29 read alike over this API.
  test.each([
    ['into maint', [0x21]],
    ['into drain and maint at once', [0x29]],
    ['into drain, and then into maint', [0x28, 0x29]],
  ])(
    'that we have opened is not read as ready once another client puts it %s',
    async (_, masks) => {
      await using fake = await startFake()
      fake.setMask(WEB1, 0x28)
      await using lb = connect(fake, { maintCuts: false })
      expect((await present(lb, WEB1)).own).toBe('drain')
      expect((await change(lb, UNDO)).status).toBe('applied')
      expect(await maskOf(fake, WEB1)).toBe(0x20)
      const opened = await present(lb, WEB1)
      expect(opened).toMatchObject({ own: 'ready', inherited: 'maint', serves: false })
      expect(opened.hints?.join()).toContain('what is set since is not shown')
      for (const mask of masks) {
        fake.setMask(WEB1, mask)
        const { own, hints } = await present(lb, WEB1, 6_000)
        expect(own).toBe(mask === 0x28 ? 'drain' : 'maint')
        if (own === 'maint') expect(hints?.join()).toContain('its own state is hidden')
      }
    },
  )

  test('that we have opened is told so to each look that begins soon after', async () => {
    await using fake = await startFake()
    fake.setMask(WEB1, 0x28)
    await using lb = connect(fake, { maintCuts: false })
    await present(lb, WEB1)
    expect((await change(lb, UNDO)).status).toBe('applied')
    // A plan, or a look for metrics, comes before that of the undo.
    expect((await present(lb, WEB1)).own).toBe('ready')
    expect((await present(lb, WEB1)).own).toBe('ready')
    expect((await present(lb, WEB1, 6_000)).own).toBe('maint')
  })

  test('that is drained again during our undo is not ready later', async () => {
    await using fake = await startFake()
    fake.setMask(WEB1, 0x28)
    let drained = false
    await using front = await meddling(fake.url, /PUT .*runtime/, async () => {
      if ((await maskOf(fake, WEB1)) !== 0x20) return
      drained = true
      fake.setMask(WEB1, 0x28)
    })
    await using lb = connect(front, { maintCuts: false })
    expect((await change(lb, UNDO)).status).toBe('rejected')
    expect(drained).toBe(true)
    fake.setMask(WEB1, 0x29)
    expect((await present(lb, WEB1)).own).toBe('maint')
  })

  test('is opened by an undo while a look of before is under way', async () => {
    await using fake = await startFake()
    fake.setMask(WEB1, 0x28)
    const isRead = Promise.withResolvers<undefined>()
    const isOpen = Promise.withResolvers<undefined>()
    let before: ReturnType<typeof present> | undefined
    await using puts = await meddling(fake.url, /PUT .*runtime/, async () => {
      if ((await maskOf(fake, WEB1)) === 0x20) isOpen.resolve(undefined)
    })
    await using lists = await meddling(puts.url, /GET .*servers$/, async () => {
      if (before === undefined) return
      isRead.resolve(undefined)
      await isOpen.promise
    })
    // The undo did not show, and goes by way of maint: before that it asks what maint does.
    await using front = await meddling(lists.url, /GET .*raw/, async () => {
      before ??= present(lb, WEB1)
      await isRead.promise
    })
    await using lb = connect(front)
    expect((await change(lb, UNDO)).status).toBe('applied')
    expect((await before)?.own).toBe('drain')
    expect((await present(lb, WEB1)).own).toBe('ready')
  })

  // The API's two sources are read one after the other: beside the status of before, a ready server reads like a drain.
  test('that resolves between the two sources of a look is opened', async () => {
    await using fake = await startFake()
    await using front = await meddling(fake.url, /GET .*stats\/native/, async () => {
      if ((await maskOf(fake, WEB1)) === 0x20) fake.setMask(WEB1, 0)
    })
    await using lb = connect(front, { maintCuts: false })
    await using run = startDrain(lb, WEB1, { timeout: '60s', seal: false })
    await run.done
    fake.setMask(WEB1, 0x28)
    expect((await run.restore()).outcome).toBe('restored')
    expect(await maskOf(fake, WEB1)).toBe(0)
  })
})
