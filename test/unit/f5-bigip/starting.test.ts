/** The REST framework of a device that starts knows no path yet: what it answers so was not done. */
import { startDrain } from 'drainable'
import { expect, test } from 'vitest'
import { ioClock } from '../../support/io-clock.js'
import { connect, ctx, rig, WEB1 } from './rig.js'

const PATH = '/tm/ltm/pool/~Common~web/members/~Common~10.0.0.1:80'
const body = { code: 404, message: `Public URI path not registered: ${PATH}`, errorStack: [] }
const starting = { match: /^PATCH/, how: 'status', status: 404, body } as const

test('a hold on a path that does not exist yet is refused for now', async () => {
  await using it = await rig()
  it.fake.fail(starting)
  const [result] = await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
  expect(result).toMatchObject({ status: 'rejected', error: { code: 'CONFLICT', retryable: true } })
})

test('an undo whose path does not exist for 20 s is done within 30 s', async () => {
  using clock = ioClock()
  await using it = await rig({ latency: 20, clock: clock.latency })
  await using lb = connect(it.fake, { freshness: '4s', minInterval: '2s' })
  const run = startDrain(lb, WEB1, { clock, timeout: '5m' })
  expect((await clock.run(run.done)).outcome).toBe('idle')
  const began = clock.now()
  const there = it.fake.fail(starting)
  clock.setTimeout(() => void there(), 20_000)
  const { members } = await clock.run(run.restore())
  expect(members).toMatchObject([{ outcome: 'restored' }])
  expect(clock.now() - began).toBeLessThan(30_000)
})

test('an undo whose path does not exist for a minute ends after 30 s', async () => {
  using clock = ioClock()
  await using it = await rig({ latency: 20, clock: clock.latency })
  await using lb = connect(it.fake, { freshness: '4s', minInterval: '2s' })
  const run = startDrain(lb, WEB1, { clock, timeout: '5m' })
  expect((await clock.run(run.done)).outcome).toBe('idle')
  const began = clock.now()
  it.fake.fail(starting)
  const { members } = await clock.run(run.restore())
  const message = expect.stringContaining('not registered') as string
  expect(members).toMatchObject([{ outcome: 'refused', error: { code: 'CONFLICT', message } }])
  expect(clock.now() - began).toBeLessThan(36_000)
})

test('a lost write is not refused by a second try that meets no path', async () => {
  using clock = ioClock()
  await using it = await rig({ latency: 20, clock: clock.latency })
  await using lb = connect(it.fake)
  const busy = { code: 503, message: 'There is an active asynchronous task.', errorStack: [] }
  it.fake.fail({ match: /^PATCH/, how: 'status', status: 503, times: 1, body: busy })
  it.fake.fail(starting)
  const applied = lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], { ...ctx(), clock })
  expect(await clock.run(applied)).toMatchObject([{ status: 'unknown' }])
})
