import { drain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { parseHasReloaded } from '../../../src/adapters/haproxy-dataplane/codec/replies.js'
import { change, look, present, rig } from '../../support/dataplane.js'
import { addBackend } from '../../support/dataplane-writer.js'

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

test('null is an empty list of reloads', () => {
  expect(parseHasReloaded('null')).toBe(false)
  expect(parseHasReloaded('[{"status":"failed"},{"status":"succeeded"}]')).toBe(true)
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

describe.concurrent('a line that the API does not tell', () => {
  test.each(VERSIONS)('refuses a durable drain of %s, which sets it back', async (version) => {
    await using r = await rig({ version, config: CONFIG }, { durable: true, maintCuts: false })
    const missing = { match: /^GET .*configuration.*\/web1/, how: 'status', status: 404 } as const
    const lift = r.fake.fail(missing)
    const hold = { kind: 'hold', ref: WEB1, to: 'drain' } as const
    const held = await change(r.lb, hold)
    expect(held).toMatchObject({ status: 'rejected', error: { retryable: true } })
    expect(held).toHaveProperty('error.message', expect.stringContaining('does not tell the line'))
    expect((await present(r.lb, WEB1)).own).toBe('ready')
    await lift()
    expect((await change(r.lb, hold)).status).toBe('applied')
    expect(r.fake.config).toMatch(/server web1 .*weight 0/)
  })
})

test('a hold that is put back has its mark while the file can not be read', async () => {
  const fake = { config: CONFIG, reloadDelay: Infinity }
  await using r = await rig(fake, { durable: true, maintCuts: false })
  const hold = { kind: 'hold', ref: WEB1, to: 'drain' } as const
  await change(r.lb, hold)
  r.fake.refuseReload('config: unknown keyword')
  await addBackend(r.fake, 'others')
  await r.fake.advanceReload()
  await r.fake.reload()
  expect(r.fake.config).not.toMatch(/server web1 .*weight 0/)
  r.fake.fail({ match: /configuration.raw/, how: 'status', status: 503 })
  expect((await change(r.lb, hold)).status).toBe('applied')
  expect(r.fake.config).toMatch(/server web1 .*weight 0/)
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
