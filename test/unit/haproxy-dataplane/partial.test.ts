import { startFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { change, connect, look, present, rig } from '../../support/dataplane.js'
import { meddling } from '../../support/dataplane-meddling.js'

const WEB1 = { pool: 'web', member: 'web1' }
const DURABLE = { durable: true, maintCuts: false } as const
const CONFIG = /^PUT .*configuration/
const RUNTIME = /^PUT .*runtime/

const hold = (to: 'drain' | 'maint') => ({ kind: 'hold', ref: WEB1, to }) as const
const back = (expect_: 'drain' | 'maint', to: 'ready' | 'drain') =>
  ({ kind: 'restore', ref: WEB1, expect: expect_, to }) as const
const refuse = (match: RegExp, more: object = {}) =>
  ({ match, how: 'status', status: 403, message: 'no', ...more }) as const

/** The words of web1 in the configuration file. */
const lineOf = (config: string): string => /server web1 .*/.exec(config)?.[0] ?? ''

describe.concurrent('a durable hold', () => {
  test.each(['3.2', '2.9'])('that is refused at run time leaves no mark on %s', async (version) => {
    await using r = await rig({ version }, DURABLE)
    const before = await present(r.lb, WEB1)
    r.fake.fail(refuse(RUNTIME))
    const result = await change(r.lb, hold('drain'))
    expect(result).toMatchObject({ status: 'rejected', error: { code: 'FORBIDDEN' } })
    expect(lineOf(r.fake.config)).toMatch(/weight 1$/)
    expect(await present(r.lb, WEB1)).toMatchObject({
      own: 'ready',
      serves: true,
      weight: before.weight!,
    })
  })

  test('whose mark can not be removed is unknown', async () => {
    await using r = await rig({}, DURABLE)
    r.fake.fail(refuse(RUNTIME))
    r.fake.fail(refuse(CONFIG, { skip: 1 }))
    const result = await change(r.lb, hold('drain'))
    expect(result).toMatchObject({ status: 'unknown', error: { code: 'FORBIDDEN' } })
    expect(result).toHaveProperty('error.message', expect.stringContaining('could not be put back'))
    expect(lineOf(r.fake.config)).toMatch(/weight 0$/)
  })

  test('that another client undoes at once leaves no mark', async () => {
    await using fake = await startFake()
    await using front = await meddling(fake.url, CONFIG, () => fake.setBehind(WEB1, 'ready'))
    await using lb = connect(front, DURABLE)
    fake.fail(refuse(RUNTIME))
    expect(await change(lb, hold('maint'))).toMatchObject({ status: 'rejected' })
    expect(lineOf(fake.config)).toMatch(/weight 1/)
    expect(lineOf(fake.config)).not.toContain('disabled')
    expect(await present(lb, WEB1)).toMatchObject({ own: 'ready', serves: true })
  })

  test('with a lost answer and then a refusal leaves no mark', async () => {
    await using r = await rig({}, DURABLE)
    r.fake.fail({ match: CONFIG, how: 'reset', execute: true, times: 1 })
    r.fake.fail(refuse(RUNTIME))
    expect(await change(r.lb, hold('drain'))).toMatchObject({ status: 'rejected' })
    expect(lineOf(r.fake.config)).toMatch(/weight 1$/)
  })

  test('whose mark may still be written is not called refused', async () => {
    await using r = await rig({}, DURABLE)
    r.fake.fail({ match: CONFIG, how: 'reset', times: 1 })
    r.fake.fail(refuse(CONFIG))
    expect(await change(r.lb, hold('drain'))).toMatchObject({
      status: 'unknown',
      error: { code: 'CONNECTION_LOST' },
    })
  })

  test('raised by a refused escalation keeps the mark of the drain', async () => {
    await using fake = await startFake()
    let meddle = false
    await using front = await meddling(fake.url, CONFIG, async () => {
      if (meddle) await fake.setBehind(WEB1, 'drain')
      meddle = false
    })
    await using lb = connect(front, DURABLE)
    await change(lb, hold('drain'))
    meddle = true
    fake.fail(refuse(RUNTIME, { times: 1 }))
    expect(await change(lb, hold('maint'))).toMatchObject({ status: 'rejected' })
    expect(lineOf(fake.config)).toMatch(/weight 0/)
    expect(lineOf(fake.config)).not.toContain('disabled')
    expect((await present(lb, WEB1)).own).toBe('drain')
  })
})

describe.concurrent('a durable restore', () => {
  test('that is refused at run time keeps its mark', async () => {
    await using r = await rig({}, DURABLE)
    await change(r.lb, hold('drain'))
    r.fake.fail(refuse(RUNTIME))
    expect(await change(r.lb, back('drain', 'ready'))).toMatchObject({
      status: 'rejected',
      error: { code: 'FORBIDDEN' },
    })
    expect(lineOf(r.fake.config)).toMatch(/weight 0$/)
    await r.fake.reload()
    expect((await present(r.lb, WEB1)).serves).toBe(false)
  })

  test('whose mark can not be put back is unknown', async () => {
    await using r = await rig({}, DURABLE)
    await change(r.lb, hold('drain'))
    r.fake.fail(refuse(RUNTIME))
    r.fake.fail(refuse(CONFIG, { skip: 1 }))
    expect(await change(r.lb, back('drain', 'ready'))).toMatchObject({
      status: 'unknown',
      error: { code: 'FORBIDDEN' },
    })
  })

  test('from maint to drain that is refused returns to maint', async () => {
    await using r = await rig({}, DURABLE)
    await change(r.lb, hold('drain'))
    await change(r.lb, hold('maint'))
    r.fake.fail(refuse(RUNTIME, { times: 1 }))
    expect(await change(r.lb, back('maint', 'drain'))).toMatchObject({ status: 'rejected' })
    expect((await present(r.lb, WEB1)).own).toBe('maint')
    expect(lineOf(r.fake.config)).toContain('disabled')
  })

  test('from maint to drain that is refused is unknown if maint cuts', async () => {
    const pools = { web: [{ name: 'web1', cutsWhenDown: true }, 'web2'] }
    await using r = await rig({ pools }, { durable: true, maintCuts: true })
    await change(r.lb, hold('maint'))
    r.fake.fail(refuse(RUNTIME, { times: 1 }))
    expect(await change(r.lb, back('maint', 'drain'))).toMatchObject({ status: 'unknown' })
    expect((await present(r.lb, WEB1)).serves).toBe(false)
  })
})

describe.concurrent('leaving maint at weight 0 because of backup servers', () => {
  const config = `backend web
  server web1 127.0.0.1:8001 on-marked-up shutdown-backup-sessions weight 7
  server spare 127.0.0.1:8002 backup
`
  const spare = { pool: 'web', member: 'spare' }

  test.each([
    ['the weight', 0],
    ['the opening', 1],
    ['the state itself', 2],
  ])('with a refusal of %s keeps maint and weight', async (_what, skip) => {
    await using r = await rig({ config, version: '3.4' }, { maintCuts: false })
    await change(r.lb, hold('maint'))
    await r.fake.occupy(spare)
    r.fake.fail(refuse(RUNTIME, { skip, times: 1 }))
    expect(await change(r.lb, back('maint', 'drain'))).toMatchObject({ status: 'rejected' })
    expect(await present(r.lb, WEB1)).toMatchObject({ own: 'maint', weight: 7 })
  })
})

test('a server that is open without its weight is not called refused', async () => {
  const config = `backend web
  server web1 127.0.0.1:8001 on-marked-up shutdown-backup-sessions weight 7
  server spare 127.0.0.1:8002 backup
`
  await using r = await rig({ config, version: '3.4' }, { maintCuts: false })
  await change(r.lb, hold('maint'))
  await r.fake.occupy({ pool: 'web', member: 'spare' })
  await change(r.lb, back('maint', 'drain'))
  r.fake.fail(refuse(RUNTIME, { skip: 1, times: 1 }))
  expect(await change(r.lb, back('drain', 'ready'))).toMatchObject({
    status: 'unknown',
    error: { code: 'FORBIDDEN' },
  })
  expect(await change(r.lb, back('drain', 'ready'))).toMatchObject({ status: 'applied' })
  expect(await present(r.lb, WEB1)).toMatchObject({ own: 'ready', weight: 7 })
})

describe.concurrent('a cut through maint', () => {
  const pools = { web: [{ name: 'web1', cutsWhenDown: true }, 'web2'] }
  const terminate = { kind: 'terminate', ref: WEB1 } as const

  test('that is refused at once is a refusal', async () => {
    await using r = await rig({ pools }, { maintCuts: true })
    await change(r.lb, hold('drain'))
    await r.fake.occupy(WEB1)
    r.fake.fail(refuse(RUNTIME))
    expect(await change(r.lb, terminate)).toMatchObject({ status: 'rejected' })
    expect((await present(r.lb, WEB1)).own).toBe('drain')
  })

  test('that stays in maint is not called refused, since it has cut', async () => {
    await using r = await rig({ pools }, { maintCuts: true })
    await change(r.lb, hold('drain'))
    await r.fake.occupy(WEB1)
    r.fake.fail(refuse(RUNTIME, { skip: 1 }))
    expect(await change(r.lb, terminate)).toMatchObject({
      status: 'unknown',
      error: { code: 'FORBIDDEN' },
    })
  })
})

describe.concurrent('a refused removal', () => {
  const remove = { kind: 'remove', ref: WEB1 } as const

  test('of a busy server leaves it drained', async () => {
    await using r = await rig()
    await change(r.lb, hold('drain'))
    const end = await r.fake.occupy(WEB1)
    expect(await change(r.lb, remove)).toMatchObject({
      status: 'rejected',
      error: { code: 'CONFLICT', retryable: true },
    })
    expect((await present(r.lb, WEB1)).own).toBe('drain')
    await end()
    expect((await change(r.lb, remove)).status).toBe('applied')
  })

  test('of a server found in maint leaves it in maint', async () => {
    await using r = await rig()
    await change(r.lb, hold('maint'))
    const end = await r.fake.occupy(WEB1)
    expect(await change(r.lb, remove)).toMatchObject({ status: 'rejected' })
    expect((await present(r.lb, WEB1)).own).toBe('maint')
    await end()
  })

  test('whose server can not be put back is unknown', async () => {
    await using r = await rig()
    await change(r.lb, hold('drain'))
    await r.fake.occupy(WEB1)
    r.fake.fail(refuse(RUNTIME))
    expect(await change(r.lb, remove)).toMatchObject({
      status: 'unknown',
      error: { code: 'CONFLICT' },
    })
    expect((await present(r.lb, WEB1)).own).toBe('maint')
  })

  test('with a failing reload is refused and the file rolled back', async () => {
    await using r = await rig({ reloadDelay: 10 }, { membership: 'configuration' })
    r.fake.refuseReload('[ALERT] parsing haproxy.cfg:12: unknown keyword')
    expect(await change(r.lb, remove)).toMatchObject({
      status: 'rejected',
      error: { code: 'REJECTED' },
    })
    expect(lineOf(r.fake.config)).not.toBe('')
    expect((await present(r.lb, WEB1)).own).toBe('ready')
  })
})

describe.concurrent('an addition whose server can not be opened', () => {
  const ref = { pool: 'web', member: 'web9' }
  const add = { kind: 'add', ref, address: '10.0.0.9', port: 80 } as const

  test('is removed again', async () => {
    await using r = await rig()
    r.fake.fail(refuse(RUNTIME))
    expect(await change(r.lb, add)).toMatchObject({
      status: 'rejected',
      error: { code: 'FORBIDDEN' },
    })
    expect((await look(r.lb, ref)).present).toBe(false)
  })

  test('is unknown if it can not be removed', async () => {
    await using r = await rig()
    r.fake.fail(refuse(RUNTIME))
    r.fake.fail(refuse(/^DELETE/))
    expect(await change(r.lb, add)).toMatchObject({
      status: 'unknown',
      error: { code: 'FORBIDDEN' },
    })
  })

  test('is unknown in the configuration', async () => {
    await using r = await rig({ reloadDelay: 10 }, { membership: 'configuration' })
    r.fake.fail(refuse(RUNTIME))
    expect(await change(r.lb, add)).toMatchObject({
      status: 'unknown',
      error: { code: 'FORBIDDEN' },
    })
  })
})
