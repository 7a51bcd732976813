import { startDrain } from 'drainable'
import { startFake } from 'drainable/testing/haproxy-dataplane'
import { expect, test } from 'vitest'
import { change, connect, context, present, warm } from '../../support/dataplane.js'
import { ioClock } from '../../support/io-clock.js'

const WEB1 = { pool: 'web', member: 'web1' }
/** Another client was faster, each time. */
const BEATEN = {
  match: /^PUT .*configuration/,
  how: 'status',
  status: 409,
  message: 'version mismatch: version in configuration file is 8, given version is 7',
} as const
const durable = { durable: true, maintCuts: false } as const

test('the first tries of a write beside other writers come at once', async () => {
  await using fake = await startFake()
  await using lb = connect(fake, durable)
  await warm(fake)
  using clock = ioClock()
  fake.fail({ ...BEATEN, times: 15 })
  const hold = { kind: 'hold', ref: WEB1, to: 'drain' } as const
  const [result] = await clock.run(lb.apply([hold], { ...context(), clock }))
  expect(result).toMatchObject({ status: 'applied' })
  expect(clock.now()).toBe(0)
})

test('an idle that can not be sealed beside other writers is not sealed', async () => {
  await using fake = await startFake()
  await using lb = connect(fake, durable)
  await warm(fake)
  using clock = ioClock()
  const end = await fake.occupy(WEB1)
  await using run = startDrain(lb, WEB1, { timeout: '60s', clock })
  run.on('phase', ({ to }) => {
    if (to !== 'draining') return
    fake.fail(BEATEN)
    void end()
  })
  const { outcome, members } = await clock.run(run.done)
  expect([outcome, members[0]?.sealed]).toEqual(['idle', false])
  const { hints } = members[0]?.lastReading ?? {}
  expect(hints?.join()).toContain('could not be written in 24 tries')
  expect(clock.now()).toBeLessThan(20_000)
  expect(await present(lb, WEB1)).toMatchObject({ own: 'drain' })
})

test('an undo takes its mark back beside other writers', async () => {
  await using fake = await startFake({ pools: { web: [{ name: 'web1', weight: 7 }, 'web2'] } })
  await using lb = connect(fake, durable)
  await change(lb, { kind: 'hold', ref: WEB1, to: 'drain' })
  fake.fail({ ...BEATEN, times: 15 })
  using clock = ioClock()
  const back = { kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' } as const
  const [result] = await clock.run(lb.apply([back], { ...context(), clock }))
  expect(result).toMatchObject({ status: 'applied' })
  expect(clock.now()).toBe(0)
  expect(fake.config).toMatch(/server web1 .*weight 7/)
})
