import { isDrainableError, startDrain, type DrainableError } from 'drainable'
import type { ChangeResult } from 'drainable/provider'
import { fakeClock } from 'drainable/testing'
import { startFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { change, connect, context, look, present, rig, until } from '../../support/dataplane.js'

const WEB1 = { pool: 'web', member: 'web1' }
const WEB2 = { pool: 'web', member: 'web2' }
const NO_OLD = { oldWorkers: { within: '1ms' } } as const

async function failing(call: Promise<unknown>): Promise<DrainableError> {
  const error: unknown = await call.then(
    (value) => new Error(`no failure: ${JSON.stringify(value)}`),
    (e: unknown) => e,
  )
  if (!isDrainableError(error)) throw error
  return error
}

function errorOf(result: ChangeResult): DrainableError {
  if ('error' in result) return result.error
  throw new Error(`no error: ${result.status}`)
}

describe.concurrent('credentials', () => {
  test.each(['2.9', '3.0', '3.2', '3.4'])(
    'a password that %s repeats reaches no message',
    async (version) => {
      await using fake = await startFake({ version })
      await using lb = connect(fake, { password: 'correct-horse' })
      const error = await failing(lb.observe([WEB1], context()))
      expect(error.code).toBe('UNAUTHENTICATED')
      expect(error.retryable).toBe(false)
      expect(JSON.stringify([error.message, error.stack, error])).not.toContain('correct-horse')
      const refused = errorOf(await change(lb, { kind: 'hold', ref: WEB1, to: 'drain' }))
      expect(refused.code).toBe('UNAUTHENTICATED')
      expect(JSON.stringify([refused.message, refused])).not.toContain('correct-horse')
    },
  )

  test('a password repeated in another answer is blacked out', async () => {
    await using r = await rig({ password: 'correct-horse' }, { password: 'correct-horse' })
    await present(r.lb, WEB1)
    r.fake.fail({ how: 'status', status: 500, message: 'got admin:correct-horse and failed' })
    const error = await failing(r.lb.observe([WEB1], context()))
    expect(error.message).toContain('got admin:*** and failed')
  })

  test('a password that is rotated in mid-drain is asked for again', async () => {
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

describe.concurrent('a product that cannot be reached is never an absent member', () => {
  test.each(['2.9', '3.0', '3.2', '3.4'])('HAProxy is down behind %s', async (version) => {
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
    'HAProxy goes down between two requests of a look at %s',
    async (version) => {
      await using r = await rig({ version })
      await present(r.lb, WEB1)
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

  test('statistics without a member that the list has prove nothing', async () => {
    await using r = await rig()
    await present(r.lb, WEB1)
    const body = JSON.stringify({ runtimeAPI: '/run/lb/master.sock@1' })
    expect(body).toContain('runtimeAPI')
    r.fake.fail({ match: /stats/, how: 'garbage' })
    expect((await failing(r.lb.observe([WEB1], context()))).code).toBe('MALFORMED_REPLY')
  })
})

describe.concurrent('HTML from a proxy in front, with status 200', () => {
  test('is no reading and no proof of a change', async () => {
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

describe.concurrent('an answer that was lost', () => {
  test('of a hold is found by reading back', async () => {
    await using r = await rig()
    r.fake.fail({ match: /^PUT/, how: 'reset', execute: true, times: 1 })
    expect(await change(r.lb, { kind: 'hold', ref: WEB1, to: 'drain' })).toMatchObject({
      status: 'applied',
    })
    expect(r.fake.requests.filter(({ method }) => method === 'PUT')).toHaveLength(1)
  })

  test('of a hold not executed is unknown; a fresh look goes before the next', async () => {
    await using r = await rig()
    r.fake.fail({ match: /^PUT/, how: 'reset', times: 1 })
    const results = await r.lb.apply(
      [
        { kind: 'hold', ref: WEB1, to: 'drain' },
        { kind: 'hold', ref: WEB2, to: 'drain' },
      ],
      context(),
    )
    expect(results.map(({ status }) => status)).toEqual(['unknown', 'applied'])
    expect(errorOf(results[0]!).code).toBe('CONNECTION_LOST')
    const sent = r.fake.requests.filter(({ line }) => /^PUT|stats/.test(line))
    expect(sent.map(({ method }) => method)).toEqual(['GET', 'PUT', 'GET', 'GET', 'PUT', 'GET'])
  })

  test('of a removal is found by reading back, and never sent twice', async () => {
    await using r = await rig()
    r.fake.fail({ match: /^DELETE/, how: 'reset', execute: true, times: 1 })
    expect((await change(r.lb, { kind: 'remove', ref: WEB1 })).status).toBe('applied')
    expect((await look(r.lb, WEB1)).present).toBe(false)
    expect(r.fake.requests.filter(({ method }) => method === 'DELETE')).toHaveLength(1)
  })

  test('of an addition is found by reading back', async () => {
    await using r = await rig()
    r.fake.fail({ match: /^POST/, how: 'reset', execute: true, times: 1 })
    const ref = { pool: 'web', member: 'web9' }
    const result = await change(r.lb, { kind: 'add', ref, address: '10.0.0.9', port: 80 })
    expect(result.status).toBe('applied')
    expect(await present(r.lb, ref)).toMatchObject({ own: 'ready', identity: '10.0.0.9:80' })
  })

  test('of a configuration write costs one fresh read: its version is used up', async () => {
    await using r = await rig({}, { durable: true })
    r.fake.fail({ match: /^PUT .*configuration/, how: 'reset', execute: true, times: 1 })
    expect((await change(r.lb, { kind: 'hold', ref: WEB1, to: 'drain' })).status).toBe('applied')
    expect(r.fake.config).toMatch(/web1 .*weight 0/)
  })
})

describe.concurrent('a HAProxy that is frozen', () => {
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

  test('an abort waits for none of it', async () => {
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

describe.concurrent('the configuration, and others who write it', () => {
  test.each([409, 429])('%d a few times is followed by a fresh read', async (status) => {
    await using r = await rig({}, { durable: true })
    r.fake.fail({ match: /^PUT .*configuration/, how: 'status', status, times: 4 })
    expect((await change(r.lb, { kind: 'hold', ref: WEB1, to: 'drain' })).status).toBe('applied')
    expect(r.fake.config).toMatch(/web1 .*weight 0/)
  })

  test('a storm that does not end is a refusal, and the member is as it was', async () => {
    await using r = await rig({}, { durable: true })
    r.fake.fail({
      match: /^PUT .*configuration/,
      how: 'status',
      status: 409,
      message: 'version mismatch',
    })
    const error = errorOf(await change(r.lb, { kind: 'hold', ref: WEB1, to: 'drain' }))
    expect(error).toMatchObject({ code: 'CONFLICT', retryable: true })
    expect(error.message).toContain("'version mismatch'")
    expect(await present(r.lb, WEB1)).toMatchObject({ own: 'ready', serves: true })
  })

  test('eight writers at once all come through', async () => {
    const names = Array.from({ length: 8 }, (_, i) => `s${i}`)
    await using fake = await startFake({ pools: { web: names } })
    const results = await Promise.all(
      names.map(async (member) => {
        await using lb = connect(fake, { durable: true })
        return await change(lb, { kind: 'hold', ref: { pool: 'web', member }, to: 'drain' })
      }),
    )
    expect(results.map(({ status }) => status)).toEqual(names.map(() => 'applied'))
    expect(fake.config.match(/weight 0/g)).toHaveLength(8)
  })

  test('a reload that fails is a refusal with the words of HAProxy', async () => {
    await using r = await rig({ reloadDelay: 10 }, { membership: 'configuration' })
    r.fake.refuseReload('[ALERT] parsing haproxy.cfg:12: unknown keyword')
    const error = errorOf(await change(r.lb, { kind: 'remove', ref: WEB1 }))
    expect(error.code).toBe('REJECTED')
    expect(error.message).toContain('unknown keyword')
    expect((await look(r.lb, WEB1)).present).toBe(true)
  })
})

describe.concurrent('an API that starts again in mid-drain', () => {
  test.each(['2.9', '3.4'])('%s: the drain goes on', async (version) => {
    const config = 'global\n  hard-stop-after 1ms\nbackend web\n  server web1 127.0.0.1:1\n'
    await using r = await rig({ version, config }, NO_OLD)
    const end = await r.fake.occupy(WEB1)
    const run = startDrain(r.lb, WEB1, { timeout: '15s', keepReady: 0 })
    await until('the drain', async () => (await present(r.lb, WEB1)).own === 'drain')
    await r.fake.restart(600)
    await end()
    const report = await run.done
    expect(report.outcome).toBe('idle')
    expect(report.members[0]).toMatchObject({ verifiedIdle: true, sealed: true })
  })

  test('a HAProxy that gives no answer during a reload of others ends no drain', async () => {
    const config = 'global\n  hard-stop-after 1ms\nbackend web\n  server web1 127.0.0.1:1\n'
    await using r = await rig({ config }, NO_OLD)
    const end = await r.fake.occupy(WEB1)
    const run = startDrain(r.lb, WEB1, { timeout: '15s', keepReady: 0 })
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

  test('one that was replaced by another generation is asked again which it is', async () => {
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

test('a 200 is no proof: the API does not send what it believes to be so', async () => {
  await using r = await rig()
  r.fake.setMask(WEB1, 12) // drained, and `disabled` in the file: the API reads "maint"
  expect((await present(r.lb, WEB1)).own).toBe('drain')
  const result = await change(r.lb, { kind: 'hold', ref: WEB1, to: 'maint' })
  expect(result.status).toBe('rejected')
  expect(errorOf(result).message).toContain("status is 'DRAIN'")
})

test('an inherited drain that the API misreads is named, and left alone', async () => {
  await using r = await rig()
  r.fake.setMask(WEB1, 80)
  const reading = await present(r.lb, WEB1)
  expect(reading.own).toBe('unknown')
  expect(reading.hints?.join()).toContain("status 'DRAIN', admin_state 'ready'")
  const back = await change(r.lb, { kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' })
  expect(errorOf(back)).toMatchObject({ code: 'CONFLICT' })
  expect(r.fake.requests.some(({ method }) => method === 'PUT')).toBe(false)
})

test('a removal that has to wait is a conflict to be asked again', async () => {
  await using r = await rig()
  const end = await r.fake.occupy(WEB1)
  const error = errorOf(await change(r.lb, { kind: 'remove', ref: WEB1 }))
  expect(error).toMatchObject({ code: 'CONFLICT', retryable: true })
  expect(error.message).toContain('still has connections')
  expect((await present(r.lb, WEB1)).own).toBe('ready')
  await end()
  expect((await change(r.lb, { kind: 'remove', ref: WEB1 })).status).toBe('applied')
})

test('what was cut is said as an upper bound, and only where maint cuts', async () => {
  const pools = { web: [{ name: 'web1', cutsWhenDown: true }, 'web2'] }
  await using r = await rig({ pools }, { maintCuts: true })
  await r.fake.occupy(WEB1)
  await r.fake.occupy(WEB1)
  await change(r.lb, { kind: 'hold', ref: WEB1, to: 'drain' })
  const result = await change(r.lb, { kind: 'terminate', ref: WEB1 })
  expect(result).toMatchObject({ status: 'applied', terminated: 2, atMost: true })
  expect(await present(r.lb, WEB1)).toMatchObject({ own: 'drain' })
})

test('a retry in turn-around is an arrival', async () => {
  await using r = await rig()
  const before = (await present(r.lb, WEB1)).scopes[0]!.arrivals!
  r.fake.retry(WEB1)
  expect((await present(r.lb, WEB1)).scopes[0]!.arrivals).toBe(before + 1)
})

describe.concurrent('backup servers that hold sessions', () => {
  const config = `backend web
  server web1 127.0.0.1:8001 on-marked-up shutdown-backup-sessions weight 7
  server spare 127.0.0.1:8002 backup
`
  const spare = { pool: 'web', member: 'spare' }

  test('leaving maint goes by weight 0 where the API can set it', async () => {
    await using r = await rig({ config, version: '3.4' })
    await change(r.lb, { kind: 'hold', ref: WEB1, to: 'maint' })
    await r.fake.occupy(spare)
    const seen = await present(r.lb, WEB1)
    expect(
      (await change(r.lb, { kind: 'restore', ref: WEB1, expect: 'maint', to: 'drain' })).status,
    ).toBe('applied')
    const sent = r.fake.requests.filter(({ method }) => method === 'PUT').slice(1)
    expect(sent.map(({ body }) => body)).toEqual([
      { weight: 0 },
      { admin_state: 'ready' },
      { admin_state: 'drain' },
    ])
    const native = seen.native!
    const back = { kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready', native } as const
    expect((await change(r.lb, back)).status).toBe('applied')
    expect(await present(r.lb, WEB1)).toMatchObject({ own: 'ready', weight: 7 })
  })

  test('refused where it can not', async () => {
    await using r = await rig({ config, version: '3.2' })
    await change(r.lb, { kind: 'hold', ref: WEB1, to: 'maint' })
    const end = await r.fake.occupy(spare)
    const back = { kind: 'restore', ref: WEB1, expect: 'maint', to: 'drain' } as const
    const error = errorOf(await change(r.lb, back))
    expect(error).toMatchObject({ code: 'CONFLICT', retryable: true })
    expect(error.message).toContain('1 sessions on backup servers')
    await end()
    expect((await change(r.lb, back)).status).toBe('applied')
  })
})

describe.concurrent('durable marks without a ticket', () => {
  test('another process gives the weight that all others have', async () => {
    await using fake = await startFake({
      pools: {
        web: [
          { name: 'web1', weight: 50 },
          { name: 'web2', weight: 50 },
        ],
      },
    })
    await using first = connect(fake, { durable: true })
    await change(first, { kind: 'hold', ref: WEB1, to: 'drain' })
    await using second = connect(fake, { durable: true })
    const back = { kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' } as const
    expect((await change(second, back)).status).toBe('applied')
    expect(await present(second, WEB1)).toMatchObject({ serves: true, weight: 50 })
  })

  test('where they differ it refuses to guess', async () => {
    await using fake = await startFake({
      pools: {
        web: [
          { name: 'web1', weight: 5 },
          { name: 'web2', weight: 50 },
          { name: 'web3', weight: 9 },
        ],
      },
    })
    await using first = connect(fake, { durable: true })
    await change(first, { kind: 'hold', ref: WEB1, to: 'drain' })
    await using second = connect(fake, { durable: true })
    const error = errorOf(
      await change(second, { kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' }),
    )
    expect(error.code).toBe('CONFLICT')
    expect(error.message).toContain("restore with the drain's ticket")
    expect((await present(second, WEB1)).own).toBe('drain')
  })
})

describe.concurrent('the cost of looking', () => {
  test('one poll of the statistics for all members, never two at once', async () => {
    const pools = { a: ['s1', 's2', 's3'], b: ['s1', 's2'] }
    await using r = await rig({ pools }, { maintCuts: false })
    const refs = Object.entries(pools).flatMap(([pool, names]) =>
      names.map((member) => ({ pool, member })),
    )
    await r.lb.observe(refs, context())
    const before = r.fake.requests.length
    await r.lb.observe(refs, context())
    const paths = r.fake.requests
      .slice(before)
      .map(({ path }) => path.replace('/v3/services/haproxy', ''))
    expect(paths).toEqual([
      '/runtime/info',
      '/stats/native?type=server',
      '/runtime/backends/a/servers',
      '/runtime/backends/b/servers',
      '/runtime/info',
    ])
    const from = r.fake.requests.length
    await Promise.all([1, 2, 3].map(() => r.lb.observe(refs, context())))
    const kinds = r.fake.requests
      .slice(from)
      .map(({ path }) => path.split('/').at(-1)!.split('?')[0])
    const one = ['info', 'native', 'servers', 'servers', 'info']
    expect(kinds).toEqual([...one, ...one, ...one])
  })

  test('the configuration is read once, and again when its version has changed', async () => {
    await using r = await rig({ pools: { web: ['web1', { name: 'web2', cutsWhenDown: true }] } })
    const reads = () =>
      r.fake.requests.filter(({ path }) => path.includes('/configuration/')).length
    expect((await present(r.lb, WEB2)).maint).toBe('cuts')
    const first = reads()
    await present(r.lb, WEB2)
    expect(reads()).toBe(first)
    await r.fake.reload()
    await present(r.lb, WEB2)
    expect(reads()).toBe(first * 2)
  })

  test('a configuration that can not be read makes maint unknown, not gentle', async () => {
    await using r = await rig()
    r.fake.fail({ match: /configuration/, how: 'status', status: 403 })
    expect((await present(r.lb, WEB1)).maint).toBe('unknown')
  })
})

test('an abort of one call is not the end of another that began with it', async () => {
  await using r = await rig()
  const controller = new AbortController()
  const first = r.lb.observe([WEB1], context(controller.signal)).catch((e: unknown) => e)
  const second = r.lb.describe(context())
  controller.abort('enough')
  expect(await first).toBe('enough')
  expect((await second).product).toBe('haproxy')
})

test('a reload between the two halves of a look gets one more look', async () => {
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
