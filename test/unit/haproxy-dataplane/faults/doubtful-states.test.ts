import { startFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { change, connect, present, rig } from '../../../support/dataplane.js'
import { WEB1, WEB2, errorOf } from './set-up.js'

test('a 200 is no proof, since the API skips what it believes to be so', async () => {
  await using r = await rig()
  r.fake.setMask(WEB1, 12) // drained, and `disabled` in the file: the API reads "maint"
  expect((await present(r.lb, WEB1)).own).toBe('drain')
  const result = await change(r.lb, { kind: 'hold', ref: WEB1, to: 'maint' })
  expect(result.status).toBe('rejected')
  expect(errorOf(result).message).toContain("status is 'DRAIN'")
})

test('an inherited drain that the API misreads is named, and left alone', async () => {
  await using r = await rig({ pools: { web: ['web1', { name: 'web2', track: 'web/web1' }] } })
  r.fake.setMask(WEB2, 80)
  const reading = await present(r.lb, WEB2)
  expect(reading.own).toBe('unknown')
  expect(reading.hints?.join()).toContain("status 'DRAIN', admin_state 'ready'")
  const back = await change(r.lb, { kind: 'restore', ref: WEB2, expect: 'drain', to: 'ready' })
  expect(errorOf(back)).toMatchObject({ code: 'CONFLICT' })
  expect(r.fake.requests.some(({ method }) => method === 'PUT')).toBe(false)
})

test('a removal that has to wait is a conflict to be retried', async () => {
  await using r = await rig()
  const end = await r.fake.occupy(WEB1)
  const error = errorOf(await change(r.lb, { kind: 'remove', ref: WEB1 }))
  expect(error).toMatchObject({ code: 'CONFLICT', retryable: true })
  expect(error.message).toContain('still has connections')
  expect((await present(r.lb, WEB1)).own).toBe('ready')
  await end()
  expect((await change(r.lb, { kind: 'remove', ref: WEB1 })).status).toBe('applied')
})

test('cut work is told as an upper bound, and only if maint cuts', async () => {
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

  test('leave maint by way of weight 0 if the API can set it', async () => {
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

  test('stay in maint if the API can not set weight 0: the change is refused', async () => {
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

describe.concurrent('durable marks whose ticket is missing', () => {
  test('get the weight that all other servers have', async () => {
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

  test('are refused if the weights differ', async () => {
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
