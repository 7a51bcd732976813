import { drain } from 'drainable'
import type { HaproxyDataplaneOptions } from 'drainable/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { parseRaw } from '../../../src/adapters/haproxy-dataplane/codec/raw.js'
import { change, present, rig } from '../../support/dataplane.js'

const CONFIG = `global
defaults cutting
  default-server on-marked-down shutdown-sessions
defaults plain
listen web from plain
  bind :80
  server web1 127.0.0.1:8001 check
  server web2 127.0.0.1:8002 on-marked-down shutdown-sessions
backend slots from plain
  server-template slot 3 127.0.0.1:9000
backend cut from cutting
  server-template slot 2-3 127.0.0.1:9000
`
const WEB1 = { pool: 'web', member: 'web1' }
const SLOT = { pool: 'slots', member: 'slot2' }

describe('the text of the configuration', () => {
  test.each([
    ['bare', CONFIG],
    ['as JSON', JSON.stringify(CONFIG)],
    ['wrapped', JSON.stringify({ _version: 1, data: CONFIG })],
  ])('%s has what the API leaves out', (_how, text) => {
    const servers = parseRaw(text)!
    expect(servers('web', 'web1')).toMatchObject({ place: 'listen', cuts: false })
    expect(servers('web', 'web2')).toMatchObject({ place: 'listen', cuts: true })
    expect(servers('slots', 'slot3')).toMatchObject({ place: 'template', cuts: false })
    expect(servers('cut', 'slot2')).toMatchObject({ place: 'template', cuts: true })
    expect(servers('slots', 'slot4')).toBeUndefined()
    expect(servers('cut', 'slot1')).toBeUndefined()
  })

  test('has no servers in quotes, comments and odd lines', () => {
    const servers = parseRaw(`
listen "a b"
  # server s1 1.1.1.1:1
listen web # server s1 1.1.1.1:1
  http-request return string "server s1 x"
  server "s2" 1.1.1.1:1 # on-marked-down shutdown-sessions
backend web2
  server s1 1.1.1.1:1
`)!
    expect(servers('web', 's1')).toBeUndefined()
    expect(servers('web', 's2')).toMatchObject({ cuts: false })
    expect(servers('web2', 's1')).toMatchObject({ place: 'line' }) // the API lists it
  })
})

describe.concurrent('a server that the API does not list in its configuration', () => {
  test.each([
    ['2.9', WEB1],
    ['3.2', SLOT],
  ] as const)('is drained and sealed on %s: %o', async (version, ref) => {
    await using r = await rig({ version, config: CONFIG })
    const report = await drain(r.lb, ref, { timeout: '60s' })
    expect(report.members[0]).toMatchObject({ outcome: 'idle', sealed: true })
  })

  test('is not sealed if maint cuts', async () => {
    await using r = await rig({ config: CONFIG })
    expect((await present(r.lb, { pool: 'web', member: 'web2' })).maint).toBe('cuts')
  })

  const ROWS: readonly [string, typeof WEB1, Partial<HaproxyDataplaneOptions>, object][] = [
    ['a durable drain', WEB1, { durable: true }, { kind: 'hold', to: 'drain' }],
    ['a durable drain', SLOT, { durable: true }, { kind: 'hold', to: 'drain' }],
    ['a removal from the file', WEB1, { membership: 'configuration' }, { kind: 'remove' }],
  ]
  test.each(ROWS)('refuses %s before anything changes: %o', async (_what, ref, options, one) => {
    await using r = await rig({ config: CONFIG }, options)
    const result = await change(r.lb, { ...one, ref } as Parameters<typeof change>[1])
    expect(result).toMatchObject({ status: 'rejected', error: { code: 'UNSUPPORTED' } })
    expect(await present(r.lb, ref)).toMatchObject({ own: 'ready', serves: true })
    expect(r.fake.requests.every(({ method }) => method === 'GET')).toBe(true)
  })

  test('is not drained durably if it may not be in the file', async () => {
    await using r = await rig({ config: CONFIG }, { durable: true, maintCuts: false })
    r.fake.fail({ match: /configuration.raw/, how: 'status', status: 403 })
    const result = await change(r.lb, { kind: 'hold', ref: WEB1, to: 'drain' })
    expect(result).toHaveProperty('error.message', expect.stringContaining('configuration/raw'))
  })

  test('is drained durably if it was added at run time', async () => {
    await using r = await rig({}, { durable: true, maintCuts: false })
    const ref = { pool: 'web', member: 'web9' }
    await change(r.lb, { kind: 'add', ref, address: '127.0.0.1', port: 8009 })
    expect((await change(r.lb, { kind: 'hold', ref, to: 'drain' })).status).toBe('applied')
    expect((await present(r.lb, ref)).hints?.join()).toContain('a reload removes it')
  })
})
