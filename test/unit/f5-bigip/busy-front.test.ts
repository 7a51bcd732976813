import { startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { ioClock, type IoClock } from '../../support/io-clock.js'
import { connect, ctx, lines, rig, WEB1 } from './rig.js'

const PATCH = /PATCH .*~Common~web\/members/

describe('a change that is redirected', () => {
  test('is sent again, as a web server that restarts redirects to its login page', async () => {
    await using it = await rig()
    it.fake.fail({ match: PATCH, how: 'status', status: 302, body: '', times: 1 })
    const [result] = await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
    expect(result?.status).toBe('applied')
    expect(it.fake.state(WEB1)).toBe('drain')
  })

  test('is unknown, not refused, where it is redirected again', async () => {
    await using it = await rig()
    it.fake.fail({ match: PATCH, how: 'status', status: 302, body: '' })
    const [result] = await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
    expect(result?.status).toBe('unknown')
  })
})

describe('a device that asks to be left alone', () => {
  const busy = { how: 'status', status: 503, headers: { 'retry-after': '60' } } as const

  const later = (clock: IoClock, ms: number): Promise<void> =>
    clock.run(new Promise<void>((resolve) => clock.setTimeout(resolve, ms)))

  test.each([9, 40, 58])(
    'gets no look for the %i s that it asked for, and the drain goes on',
    async (seconds) => {
      using clock = ioClock()
      await using it = await rig({ latency: 20, clock: clock.latency })
      await using lb = connect(it.fake, { freshness: 4_000, minInterval: 2_000 })
      const run = startDrain(lb, WEB1, { clock, timeout: '2m' })
      await later(clock, 3_000)
      expect(it.fake.state(WEB1)).toBe('drain')
      it.fake.fail({ ...busy, headers: { 'retry-after': `${seconds}` }, times: 1 })
      const before = it.fake.requests.length
      await later(clock, seconds * 1_000 - 500)
      expect(lines(it.fake, before).length).toBeLessThanOrEqual(1)
      const { outcome } = await clock.run(run.done)
      expect(outcome).toBe('idle')
      await clock.run(run.restore())
    },
  )

  test('is waited for by the first look of a drain too', async () => {
    using clock = ioClock()
    await using it = await rig({ latency: 20, clock: clock.latency })
    await using lb = connect(it.fake, { freshness: 4_000, minInterval: 2_000 })
    it.fake.fail({ ...busy, headers: { 'retry-after': '40' }, times: 1 })
    const run = startDrain(lb, WEB1, { clock, timeout: '2m' })
    await later(clock, 39_500)
    expect(lines(it.fake).length).toBe(1)
    expect((await clock.run(run.done)).outcome).toBe('idle')
    await clock.run(run.restore())
  })

  test('is asked all the same before the deadline of a drain has passed', async () => {
    using clock = ioClock()
    await using it = await rig({ latency: 20, clock: clock.latency })
    await using lb = connect(it.fake, { freshness: 4_000, minInterval: 2_000 })
    const run = startDrain(lb, WEB1, { clock, timeout: '45s' })
    await later(clock, 3_000)
    it.fake.fail({ ...busy, times: 1 })
    expect((await clock.run(run.done)).outcome).toBe('idle')
    expect(clock.now()).toBeLessThan(58_000)
    await clock.run(run.restore())
  })

  test('does not keep an undo from opening the member in its 30 s', async () => {
    using clock = ioClock()
    await using it = await rig({ latency: 20, clock: clock.latency })
    await using lb = connect(it.fake, { freshness: 4_000, minInterval: 2_000 })
    const run = startDrain(lb, WEB1, { clock, timeout: '5m' })
    await clock.run(run.done)
    const end = it.fake.fail(busy)
    clock.setTimeout(() => void end(), 20_000)
    const { outcome } = await clock.run(run.restore())
    expect(outcome).toBe('restored')
    expect(it.fake.state(WEB1)).toBe('ready')
  })

  test('does not keep an undo that begins while a look waits either', async () => {
    using clock = ioClock()
    await using it = await rig({ latency: 20, clock: clock.latency })
    await using lb = connect(it.fake, { freshness: 4_000, minInterval: 2_000 })
    const run = startDrain(lb, WEB1, { clock, timeout: '5m' })
    await later(clock, 3_000)
    it.fake.fail({ ...busy, times: 1 })
    await later(clock, 3_000)
    const { outcome } = await clock.run(run.restore())
    expect(outcome).toBe('restored')
    expect(it.fake.state(WEB1)).toBe('ready')
    expect(clock.now()).toBeLessThan(36_000)
  })

  test('is named with the time that it asked for', async () => {
    using clock = ioClock()
    await using it = await rig({ latency: 20, clock: clock.latency })
    await using lb = connect(it.fake, { freshness: 4_000, minInterval: 2_000 })
    const run = startDrain(lb, WEB1, { clock, timeout: '5m' })
    await later(clock, 3_000)
    it.fake.fail({ ...busy, times: 1 })
    await later(clock, 20_000)
    expect(run.why().map(({ text }) => text)).toContainEqual(
      expect.stringContaining('asked for no request for another'),
    )
    await clock.run(run.restore())
  })
})
