import { startFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { change, connect, look, present, rig } from '../../support/dataplane.js'
import { meddling } from '../../support/dataplane-meddling.js'

const WEB1 = { pool: 'web', member: 'web1' }

/** In front of a fake: executes a request and then answers it in its own way, the first time. */
function rewriting(target: string, match: RegExp, status: number, message: string) {
  let left = 1
  const odd = { status, body: { code: status, message } }
  return meddling(
    target,
    match,
    () => Promise.resolve(),
    () => (left-- > 0 ? odd : undefined),
  )
}

describe.concurrent('a refusal of uncertain meaning', () => {
  test.each([
    [500, 'dial unix /run/lb/master.sock: connect: connection refused'],
    [404, 'no data for web/web1: not found'],
  ])('of %d after the hold was executed finds the hold in place', async (status, message) => {
    await using fake = await startFake()
    await using front = await rewriting(fake.url, /^PUT/, status, message)
    await using lb = connect(front)
    const result = await change(lb, { kind: 'hold', ref: WEB1, to: 'drain' })
    expect((await present(lb, WEB1)).own).toBe('drain')
    expect(result.status).toBe('applied')
  })

  test('of the look after a hold whose answer was lost is none of the hold', async () => {
    await using fake = await startFake()
    await using front = await meddling(
      fake.url,
      /^PUT/,
      () => Promise.resolve(void fake.fail({ match: /^GET/, how: 'status', status: 403 })),
      () => ({ status: 502, body: {} }),
    )
    await using lb = connect(front)
    const result = await change(lb, { kind: 'hold', ref: WEB1, to: 'drain' })
    expect(result).toMatchObject({ status: 'unknown', error: { code: 'UNREACHABLE' } })
  })

  test('of 404 to a hold of an existing server is not its absence', async () => {
    await using r = await rig()
    const message = 'no data for web/web1: not found'
    r.fake.fail({ match: /^PUT/, how: 'status', status: 404, message, times: 1 })
    const result = await change(r.lb, { kind: 'hold', ref: WEB1, to: 'drain' })
    expect(result.status).toBe('unknown')
    expect((await present(r.lb, WEB1)).own).toBe('ready')
  })

  test('of 500 to a hold that was not executed stays a refusal', async () => {
    await using r = await rig()
    r.fake.fail({ match: /^PUT/, how: 'status', status: 500, message: 'no', times: 1 })
    const result = await change(r.lb, { kind: 'hold', ref: WEB1, to: 'drain' })
    expect(result).toMatchObject({ status: 'rejected', error: { code: 'REJECTED' } })
  })

  test('of 404 to a removal of an existing server is not its absence', async () => {
    await using r = await rig()
    const message = 'no data for web/web1: not found'
    r.fake.fail({ match: /^DELETE/, how: 'status', status: 404, message, times: 1 })
    const result = await change(r.lb, { kind: 'remove', ref: WEB1 })
    expect((await look(r.lb, WEB1)).present).toBe(true)
    expect(result).toMatchObject({ status: 'unknown' })
  })
})

test('a removal from the file with a lost answer is not repeated', async () => {
  await using r = await rig({ reloadDelay: 10 }, { membership: 'configuration' })
  r.fake.fail({ match: /^DELETE .*configuration/, how: 'reset', execute: true, times: 1 })
  const result = await change(r.lb, { kind: 'remove', ref: WEB1 })
  const sent = r.fake.requests.filter(({ method }) => method === 'DELETE').map(({ path }) => path)
  expect(sent).toHaveLength(1)
  expect(result.status).toBe('applied')
  expect((await look(r.lb, WEB1)).present).toBe(false)
})

test('a weight set aside comes back after a lost answer to the opening', async () => {
  const config = `backend web
  server web1 127.0.0.1:8001 on-marked-up shutdown-backup-sessions weight 7
  server spare 127.0.0.1:8002 backup
`
  await using r = await rig({ config, version: '3.4' })
  await change(r.lb, { kind: 'hold', ref: WEB1, to: 'maint' })
  await r.fake.occupy({ pool: 'web', member: 'spare' })
  const { native } = await present(r.lb, WEB1)
  const sent = r.fake.requests.length
  const back = {
    kind: 'restore',
    ref: WEB1,
    expect: 'maint',
    to: 'ready',
    native: native!,
  } as const
  const end = new AbortController()
  const losing = (async () => {
    while (!end.signal.aborted) {
      if (r.fake.requests.slice(sent).some(({ body }) => JSON.stringify(body) === '{"weight":0}')) {
        r.fake.fail({ match: /^PUT/, how: 'reset', execute: true, times: 1 })
        return
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
  })()
  const result = await change(r.lb, back)
  end.abort()
  await losing
  expect(result.status).toBe('applied')
  expect(await present(r.lb, WEB1)).toMatchObject({ own: 'ready', weight: 7, serves: true })
})

describe.concurrent('a durable mark with a lost write, with the state in place', () => {
  test.each([['ready', { kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' }]] as const)(
    '%s is not called applied',
    async (state, one) => {
      await using r = await rig({}, { durable: true })
      await change(r.lb, { kind: 'hold', ref: WEB1, to: 'drain' })
      await r.fake.setBehind(WEB1, state)
      const config = r.fake.config
      const recovers = r.fake.fail({ match: /^PUT .*configuration/, how: 'status', status: 504 })
      expect((await change(r.lb, one)).status).toBe('unknown')
      expect(r.fake.config).toBe(config)
      await recovers()
      expect((await change(r.lb, one)).status).toBe('applied')
      expect(r.fake.config).not.toBe(config)
    },
  )
})

test('a durable maintenance is left at weight 0, in a separate write', async () => {
  const config = `backend web
  server web1 127.0.0.1:8001 on-marked-up shutdown-backup-sessions weight 7
  server spare 127.0.0.1:8002 backup
`
  await using r = await rig({ config }, { durable: true })
  const { native } = await present(r.lb, WEB1)
  await change(r.lb, { kind: 'hold', ref: WEB1, to: 'maint' })
  await r.fake.occupy({ pool: 'web', member: 'spare' })
  const from = r.fake.requests.length
  const back = {
    kind: 'restore',
    ref: WEB1,
    expect: 'maint',
    to: 'ready',
    native: native!,
  } as const
  expect((await change(r.lb, back)).status).toBe('applied')
  const lines = r.fake.requests
    .slice(from)
    .filter(({ method, path }) => method === 'PUT' && path.includes('/configuration/'))
    .map(({ body }) => body as { weight: number; maintenance: string })
  expect(lines.map(({ weight, maintenance }) => [weight, maintenance])).toEqual([
    [0, 'disabled'],
    [7, 'disabled'],
  ])
  expect(await present(r.lb, WEB1)).toMatchObject({ own: 'ready', weight: 7 })
})
