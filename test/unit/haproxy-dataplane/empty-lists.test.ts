import { drain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { parseReloads } from '../../../src/adapters/haproxy-dataplane/codec/replies.js'
import { change, look, present, rig } from '../../support/dataplane.js'

const CONFIG = `global
defaults
backend web
  server web1 127.0.0.1:8001
  server web2 127.0.0.1:8002
backend empty
backend slots
  server-template slot 2 127.0.0.1:9000
`
const WEB1 = { pool: 'web', member: 'web1' }
const SLOT = { pool: 'slots', member: 'slot1' }
const VERSIONS = ['2.9', '3.2', '3.4'] as const
const NULL = { how: 'status', status: 200, body: null } as const

test('null is an empty list of reloads', () => {
  expect(parseReloads('null')).toMatchObject({ pending: [], failed: [] })
})

describe.concurrent.each(VERSIONS)('a backend without lines of servers on %s', (version) => {
  test('takes its first server', async () => {
    const options = { membership: 'configuration' } as const
    await using r = await rig({ version, config: CONFIG, reloadDelay: 10 }, options)
    const ref = { pool: 'empty', member: 'web9' }
    const added = await change(r.lb, { kind: 'add', ref, address: '127.0.0.1', port: 8009 })
    expect(added.status).toBe('applied')
    expect(r.fake.config).toContain('server web9 127.0.0.1:8009')
    expect((await look(r.lb, ref)).present).toBe(true)
  })

  test('has slots that are drained and sealed', async () => {
    await using r = await rig({ version, config: CONFIG })
    const { members } = await drain(r.lb, SLOT, { timeout: '60s' })
    expect(members[0]).toMatchObject({ outcome: 'idle', sealed: true })
  })

  test('has slots that are not drained durably', async () => {
    await using r = await rig({ version, config: CONFIG }, { durable: true, maintCuts: false })
    for (let tries = 0; tries < 2; tries++) {
      const held = await change(r.lb, { kind: 'hold', ref: SLOT, to: 'drain' })
      expect(held).toMatchObject({ status: 'rejected', error: { code: 'UNSUPPORTED' } })
    }
    expect((await present(r.lb, SLOT)).own).toBe('ready')
  })
})

describe.concurrent('a configuration that is null', () => {
  const text = /GET .*configuration.raw$/

  test('leaves it unread until it can be read', async () => {
    await using r = await rig({ version: '3.4', config: CONFIG })
    const lift = r.fake.fail({ match: text, ...NULL })
    await change(r.lb, { kind: 'hold', ref: WEB1, to: 'drain' })
    const unread = await present(r.lb, WEB1)
    expect(unread.maint).toBe('unknown')
    expect(unread.hints?.join()).toContain('it is not sealed')
    await lift()
    expect((await present(r.lb, WEB1)).maint).toBe('gentle')
  })

  test('is no reason to call it added at run time', async () => {
    await using r = await rig({ version: '3.4', config: CONFIG }, { durable: true })
    const lift = r.fake.fail({ match: text, ...NULL })
    const hold = { kind: 'hold', ref: WEB1, to: 'drain' } as const
    for (let tries = 0; tries < 2; tries++) {
      const held = await change(r.lb, hold)
      expect(held).toMatchObject({ status: 'rejected', error: { retryable: true } })
    }
    await lift()
    expect((await change(r.lb, hold)).status).toBe('applied')
    expect(r.fake.config).toMatch(/server web1 .*weight 0/)
  })
})

describe.concurrent('a check of a change that could not be made', () => {
  const FAILURES = [{ how: 'garbage' }, { how: 'status', status: 503 }, { how: 'reset' }] as const

  test.each(FAILURES)('is made again before a durable drain: $how', async (failure) => {
    await using r = await rig({ config: CONFIG }, { durable: true, maintCuts: false })
    const lift = r.fake.fail({ match: /configuration/, ...failure })
    const hold = { kind: 'hold', ref: SLOT, to: 'drain' } as const
    for (let tries = 0; tries < 2; tries++) {
      const held = await change(r.lb, hold)
      expect(held).toMatchObject({ status: 'rejected', error: { retryable: true } })
    }
    await lift()
    expect(await change(r.lb, hold)).toMatchObject({ error: { code: 'UNSUPPORTED' } })
    expect((await present(r.lb, SLOT)).own).toBe('ready')
  })

  test.each(FAILURES)('is made again for servers that track it: $how', async (failure) => {
    const web = [{ name: 'web1', check: true }, 'web2']
    const api = [{ name: 'api1', track: 'web/web1' }]
    await using r = await rig({ pools: { web, api } })
    await present(r.lb, WEB1)
    const hold = { kind: 'hold', ref: WEB1, to: 'drain' } as const
    const lift = r.fake.fail({ match: /stats.*parent=api/, ...failure })
    for (let tries = 0; tries < 2; tries++) {
      const held = await change(r.lb, hold)
      expect(held).toMatchObject({ status: 'rejected', error: { retryable: true } })
    }
    await lift()
    expect(await change(r.lb, hold)).toMatchObject({ error: { code: 'POOL_AT_MINIMUM' } })
    expect((await present(r.lb, WEB1)).own).toBe('ready')
  })
})
