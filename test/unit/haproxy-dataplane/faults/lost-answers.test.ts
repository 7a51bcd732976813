import { startFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { change, connect, context, look, present, rig } from '../../../support/dataplane.js'
import { WEB1, WEB2, errorOf } from './set-up.js'

describe.concurrent('a lost answer', () => {
  test('to a hold is found by reading back', async () => {
    await using r = await rig()
    r.fake.fail({ match: /^PUT/, how: 'reset', execute: true, times: 1 })
    expect(await change(r.lb, { kind: 'hold', ref: WEB1, to: 'drain' })).toMatchObject({
      status: 'applied',
    })
    expect(r.fake.requests.filter(({ method }) => method === 'PUT')).toHaveLength(1)
  })

  test('to a hold not executed is unknown; a new look comes before the next', async () => {
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

  test('to a removal is found by reading back, and never sent twice', async () => {
    await using r = await rig()
    r.fake.fail({ match: /^DELETE/, how: 'reset', execute: true, times: 1 })
    expect((await change(r.lb, { kind: 'remove', ref: WEB1 })).status).toBe('applied')
    expect((await look(r.lb, WEB1)).present).toBe(false)
    expect(r.fake.requests.filter(({ method }) => method === 'DELETE')).toHaveLength(1)
  })

  test('to an addition is found by reading back', async () => {
    await using r = await rig()
    r.fake.fail({ match: /^POST/, how: 'reset', execute: true, times: 1 })
    const ref = { pool: 'web', member: 'web9' }
    const result = await change(r.lb, { kind: 'add', ref, address: '10.0.0.9', port: 80 })
    expect(result.status).toBe('applied')
    expect(await present(r.lb, ref)).toMatchObject({ own: 'ready', identity: '10.0.0.9:80' })
  })

  test('to a configuration write costs one read, since its version is used', async () => {
    await using r = await rig({}, { durable: true })
    r.fake.fail({ match: /^PUT .*configuration/, how: 'reset', execute: true, times: 1 })
    expect((await change(r.lb, { kind: 'hold', ref: WEB1, to: 'drain' })).status).toBe('applied')
    expect(r.fake.config).toMatch(/web1 .*weight 0/)
  })
})

describe.concurrent('a configuration with other writers', () => {
  test.each([409, 429])('is read again after %d a few times', async (status) => {
    await using r = await rig({}, { durable: true })
    r.fake.fail({ match: /^PUT .*configuration/, how: 'status', status, times: 4 })
    expect((await change(r.lb, { kind: 'hold', ref: WEB1, to: 'drain' })).status).toBe('applied')
    expect(r.fake.config).toMatch(/web1 .*weight 0/)
  })

  test('refuses in a lasting storm, and the member is unchanged', async () => {
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

  test('takes the writes of eight writers at once', async () => {
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

  test('whose reload fails refuses with the words of HAProxy', async () => {
    await using r = await rig({ reloadDelay: 10 }, { membership: 'configuration' })
    r.fake.refuseReload('[ALERT] parsing haproxy.cfg:12: unknown keyword')
    const error = errorOf(await change(r.lb, { kind: 'remove', ref: WEB1 }))
    expect(error.code).toBe('REJECTED')
    expect(error.message).toContain('unknown keyword')
    expect((await look(r.lb, WEB1)).present).toBe(true)
  })
})
