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
    const file = parseRaw(text)!
    expect(file.server('web', 'web1')).toMatchObject({ place: 'listen', maint: 'gentle' })
    expect(file.server('web', 'web2')).toMatchObject({ place: 'listen', maint: 'cuts' })
    expect(file.server('slots', 'slot3')).toMatchObject({ place: 'template', maint: 'gentle' })
    expect(file.server('cut', 'slot2')).toMatchObject({ place: 'template', maint: 'cuts' })
    expect(file.server('slots', 'slot4')).toBeUndefined()
    expect(file.server('cut', 'slot1')).toBeUndefined()
  })

  test('has the checks, marks and hard-stop-after of its lines', () => {
    const file = parseRaw(`
global
  hard-stop-after 5m
defaults
  default-server check weight 3
backend web
  server web1 127.0.0.1:8001 weight 0 disabled
  server web2 [::1]:8002 no-check weight 7
  server web3 127.0.0.1:8003 enabled
`)!
    expect(file.hardStop).toBe(300_000)
    const marked = { checked: true, weight: 0, maintenance: 'enabled' }
    expect(file.server('web', 'web1')).toMatchObject(marked)
    expect(file.server('web', 'web2')).toMatchObject({ checked: false, weight: 7 })
    expect(file.server('web', 'web3')).toMatchObject({ weight: null, maintenance: 'disabled' })
  })

  test.each([
    ['daemon', 'unset'],
    ['hard-stop-after 1500', 1_500],
    ['hard-stop-after "$STOP"', 'unknown'],
  ])('with %s says of hard-stop-after: %s', (line, value) => {
    expect(parseRaw(`global\n  ${line}\n`)?.hardStop).toBe(value)
  })

  test.each(['', 'null', '<html>502</html>', '{"_version":1}'])('is not %j', (text) => {
    expect(parseRaw(text)).toBeUndefined()
  })

  test('has no servers in quotes, comments and odd lines', () => {
    const file = parseRaw(`
listen "a b"
  # server s1 1.1.1.1:1
listen web # server s1 1.1.1.1:1
  http-request return string "server s1 x"
  server "s2" 1.1.1.1:1 # on-marked-down shutdown-sessions
backend web2
  server s1 1.1.1.1:1
`)!
    expect(file.server('web', 's1')).toBeUndefined()
    expect(file.server('web', 's2')).toMatchObject({ maint: 'gentle' })
    expect(file.server('web2', 's1')).toMatchObject({ place: 'line' }) // the API lists it
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

  test('is drained durably by its line if the text is kept from the user', async () => {
    await using r = await rig({}, { durable: true, maintCuts: false })
    r.fake.fail({ match: /configuration.raw/, how: 'status', status: 403 })
    const ref = { pool: 'web', member: 'web1' }
    expect((await change(r.lb, { kind: 'hold', ref, to: 'drain' })).status).toBe('applied')
    expect(r.fake.config).toMatch(/server web1 .*weight 0/)
    const undo = { kind: 'restore', ref, expect: 'drain', to: 'ready' } as const
    expect((await change(r.lb, undo)).status).toBe('applied')
    expect(r.fake.config).not.toMatch(/server web1 .*weight 0/)
  })

  test('is drained durably if it was added at run time', async () => {
    await using r = await rig({}, { durable: true, maintCuts: false })
    const ref = { pool: 'web', member: 'web9' }
    await change(r.lb, { kind: 'add', ref, address: '127.0.0.1', port: 8009 })
    expect((await change(r.lb, { kind: 'hold', ref, to: 'drain' })).status).toBe('applied')
    expect((await present(r.lb, ref)).hints?.join()).toContain('a reload removes it')
  })
})
