import { startDrain } from 'drainable'
import { fakeClock } from 'drainable/testing'
import { startFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { change, connect, context, look, present, rig, until } from '../../../support/dataplane.js'
import { WEB1, WEB2, NO_OLD, failing, errorOf } from './set-up.js'

describe.concurrent('credentials', () => {
  test.each(['2.9', '3.0', '3.2', '3.4'])('that %s repeats reach no message', async (version) => {
    await using fake = await startFake({ version })
    await using lb = connect(fake, { password: 'correct-horse' })
    const error = await failing(lb.observe([WEB1], context()))
    expect(error.code).toBe('UNAUTHENTICATED')
    expect(error.retryable).toBe(false)
    expect(JSON.stringify([error.message, error.stack, error])).not.toContain('correct-horse')
    const refused = errorOf(await change(lb, { kind: 'hold', ref: WEB1, to: 'drain' }))
    expect(refused.code).toBe('UNAUTHENTICATED')
    expect(JSON.stringify([refused.message, refused])).not.toContain('correct-horse')
  })

  test('repeated in another answer are blacked out', async () => {
    await using r = await rig({ password: 'correct-horse' }, { password: 'correct-horse' })
    await present(r.lb, WEB1)
    r.fake.fail({ how: 'status', status: 500, message: 'got admin:correct-horse and failed' })
    const error = await failing(r.lb.observe([WEB1], context()))
    expect(error.message).toContain('got admin:*** and failed')
  })

  test('are asked for again when they rotate in mid-drain', async () => {
    let password = 'first'
    let asked = 0
    await using r = await rig(
      { password: 'first' },
      {
        ...NO_OLD,
        password: () => {
          asked++
          return password
        },
      },
    )
    const end = await r.fake.occupy(WEB1)
    const run = startDrain(r.lb, WEB1, { timeout: '30s' })
    await until('the drain', async () => (await present(r.lb, WEB1)).own === 'drain')
    expect(asked).toBe(1)
    password = 'second'
    r.fake.setPassword('second')
    await end()
    expect((await run.done).outcome).toBe('idle')
    expect(asked).toBe(2)
  })
})

describe.concurrent('a member of an unreachable product is never absent', () => {
  test.each(['2.9', '3.0', '3.2', '3.4'])('while HAProxy is down behind %s', async (version) => {
    await using r = await rig({ version })
    await present(r.lb, WEB1)
    r.fake.setDown(true)
    for (const refs of [[WEB1], 'all'] as const) {
      const error = await failing(r.lb.observe(refs, context()))
      expect(error).toMatchObject({ code: 'UNREACHABLE', retryable: true })
    }
    r.fake.setDown(false)
    expect((await present(r.lb, WEB1)).own).toBe('ready')
  })

  test.each(['2.9', '3.0', '3.2'])(
    'when HAProxy goes down between two requests of a look at %s',
    async (version) => {
      await using r = await rig({ version })
      await present(r.lb, WEB1)
      r.fake.setMask(WEB1, 0x20) // a state that the statistics alone do not tell
      // the list of servers is then empty, or a 404: the same as "no such backend"
      r.fake.fail({
        match: /runtime\/(backends|servers)/,
        how: 'status',
        status: 404,
        message: 'no data for web: not found',
      })
      const error = await failing(r.lb.observe([WEB1], context()))
      expect(error.retryable).toBe(true)
    },
  )

  test('and statistics without a listed member prove nothing', async () => {
    await using r = await rig()
    await present(r.lb, WEB1)
    const body = JSON.stringify({ runtimeAPI: '/run/lb/master.sock@1' })
    expect(body).toContain('runtimeAPI')
    r.fake.fail({ match: /stats/, how: 'garbage' })
    expect((await failing(r.lb.observe([WEB1], context()))).code).toBe('MALFORMED_REPLY')
  })
})

describe.concurrent('an HTML page of a proxy with status 200', () => {
  test('is not a reading, and not proof of a change', async () => {
    await using r = await rig()
    const seen = await present(r.lb, WEB1)
    const recovers = r.fake.fail({ how: 'garbage' })
    const error = await failing(r.lb.observe([WEB1], context()))
    expect(error).toMatchObject({ code: 'MALFORMED_REPLY' })
    expect(error.message).toContain('a proxy in front')
    await recovers()
    r.fake.fail({ match: /^PUT/, how: 'garbage', times: 1 })
    const result = await change(r.lb, {
      kind: 'hold',
      ref: WEB1,
      to: 'drain',
      identity: seen.identity,
    })
    expect(result.status).toBe('unknown')
    expect((await present(r.lb, WEB1)).own).toBe('ready')
  })
})

describe.concurrent('a frozen HAProxy', () => {
  test('holds a call until its limit, and nothing is sent after that', async () => {
    await using r = await rig()
    expect((await change(r.lb, { kind: 'hold', ref: WEB1, to: 'drain' })).status).toBe('applied')
    const thaw = r.fake.freeze()
    const clock = fakeClock(performance.now())
    const hold = { kind: 'hold', ref: WEB2, to: 'drain' } as const
    const [result] = await clock.runUntil(r.lb.apply([hold], { ...context(), clock }))
    expect(result?.status).toBe('rejected') // the look before it failed: nothing was sent
    expect(errorOf(result!).code).toBe('CALL_TIMEOUT')
    thaw()
    await until(
      'it answers again',
      async () => (await look(r.lb, WEB2).catch(() => undefined))?.present,
    )
    expect((await present(r.lb, WEB2)).own).toBe('ready')
  })

  test('is not waited for by an abort', async () => {
    await using r = await rig()
    await present(r.lb, WEB1)
    const thaw = r.fake.freeze()
    for (const call of [
      (signal: AbortSignal) => r.lb.observe([WEB1], context(signal)),
      (signal: AbortSignal) =>
        r.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], context(signal)),
    ]) {
      const reason = { gaveUp: true }
      const controller = new AbortController()
      const ended = call(controller.signal).catch((e: unknown) => e)
      setTimeout(() => controller.abort(reason), 30)
      // A call that waited for its own limit would end with that.
      expect(await ended).toBe(reason)
    }
    thaw()
  })
})

describe.concurrent('an API that restarts in mid-drain', () => {
  test.each(['2.9', '3.4'])('%s: lets the drain continue', async (version) => {
    const config = 'global\n  hard-stop-after 1ms\nbackend web\n  server web1 127.0.0.1:1\n'
    await using r = await rig({ version, config, uptime: 100 }, NO_OLD)
    const end = await r.fake.occupy(WEB1)
    const run = startDrain(r.lb, WEB1, { timeout: '50s', keepReady: 0 })
    await until('the drain', async () => (await present(r.lb, WEB1)).own === 'drain')
    await r.fake.restart(600)
    await end()
    const report = await run.done
    expect(report.outcome).toBe('idle')
    expect(report.members[0]).toMatchObject({ verifiedIdle: true, sealed: true })
  })

  test('before a HAProxy without an answer during a reload ends no drain', async () => {
    const config = 'global\n  hard-stop-after 1ms\nbackend web\n  server web1 127.0.0.1:1\n'
    await using r = await rig({ config, uptime: 100 }, NO_OLD)
    const end = await r.fake.occupy(WEB1)
    const run = startDrain(r.lb, WEB1, { timeout: '50s', keepReady: 0 })
    await until('the drain', async () => (await present(r.lb, WEB1)).own === 'drain')
    // As 3.2.13 has it where HAProxy closed the socket without a word
    const body = { info: { release_date: '0001-01-01' }, runtimeAPI: '/run/haproxy.sock' }
    const heal = r.fake.fail({ match: /runtime\/info/, how: 'status', status: 200, body })
    await new Promise((told) => run.once('fault', told))
    await heal()
    await end()
    expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    await run.close()
  })

  test('of another generation is asked again which one it is', async () => {
    const old = await startFake({ version: '2.9' })
    await using lb = connect(old)
    await present(lb, WEB1)
    const port = Number(new URL(old.url).port)
    await old.close()
    await using fresh = await startFake({ version: '3.4', port })
    await lb.observe([WEB1], context()).catch(() => undefined)
    expect((await present(lb, WEB1)).own).toBe('ready')
    expect(fresh.requests.some(({ path }) => path === '/v3/info')).toBe(true)
  })
})

test('an abort of one call does not end another that began with it', async () => {
  await using r = await rig()
  const controller = new AbortController()
  const first = r.lb.observe([WEB1], context(controller.signal)).catch((e: unknown) => e)
  const second = r.lb.describe(context())
  controller.abort('enough')
  expect(await first).toBe('enough')
  expect((await second).product).toBe('haproxy')
})

test('a reload between the two halves of a look leads to one more look', async () => {
  await using r = await rig()
  await present(r.lb, WEB1)
  const looking = r.lb.observe([WEB1], context())
  await until(
    'the look has begun',
    async () => (r.fake.requests.at(-1)!.path.includes('stats') ? true : undefined),
    500,
  ).catch(() => undefined)
  await r.fake.reload()
  const { readings } = await looking
  expect(readings[0]!.present).toBe(true)
  expect((await r.lb.describe(context())).capabilities.minInterval).toBe(250)
})
