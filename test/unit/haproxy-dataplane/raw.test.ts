import { drain } from 'drainable'
import type { HaproxyDataplaneOptions } from 'drainable/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { parseFile } from '../../../src/adapters/haproxy-dataplane/codec/configuration.js'
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
    const servers = parseFile(text)!.server
    expect(servers({ pool: 'web', member: 'web1' })).toMatchObject({
      place: 'listen',
      maint: 'gentle',
    })
    expect(servers({ pool: 'web', member: 'web2' })).toMatchObject({
      place: 'listen',
      maint: 'cuts',
    })
    expect(servers({ pool: 'slots', member: 'slot3' })).toMatchObject({
      place: 'template',
      maint: 'gentle',
    })
    expect(servers({ pool: 'cut', member: 'slot2' })).toMatchObject({
      place: 'template',
      maint: 'cuts',
    })
    expect(servers({ pool: 'slots', member: 'slot4' })).toMatchObject({ place: 'run time' })
    expect(servers({ pool: 'cut', member: 'slot1' })).toMatchObject({ place: 'run time' })
  })

  test('has no servers in quotes, comments and odd lines', () => {
    const { server: servers } = parseFile(`
listen "a b"
  # server s1 1.1.1.1:1
listen web # server s1 1.1.1.1:1
  http-request return string "server s1 x"
  server "s2" 1.1.1.1:1 # on-marked-down shutdown-sessions
backend web2
  server s1 1.1.1.1:1
`)!
    expect(servers({ pool: 'web', member: 's1' })).toMatchObject({ place: 'run time' })
    expect(servers({ pool: 'web', member: 's2' })).toMatchObject({ maint: 'gentle' })
    expect(servers({ pool: 'web2', member: 's1' })).toMatchObject({ place: 'line' }) // the API lists it
  })

  test('has the marks of a line, and the checks that apply to it', () => {
    const { server } = parseFile(`global
defaults
  default-server check
backend web
  server web1 1.1.1.1:1 disabled weight 0
  server web2 1.1.1.1:2 no-check cookie weight
  server web3 1.1.1.1:3 enabled weight 7
`)!
    const at = (member: string) => server({ pool: 'web', member })
    expect(at('web1')).toMatchObject({ maintenance: 'enabled', weight: 0, checked: true })
    expect(at('web2')).toMatchObject({ maintenance: null, weight: null, checked: false })
    expect(at('web3')).toMatchObject({ maintenance: null, weight: 7, checked: true })
  })

  test.each([
    ['hard-stop-after 30s', 30_000],
    ['hard-stop-after 1500', 1_500],
    ['hard-stop-after 5m # soon', 300_000],
    ['hard-stop-after "$TIME"', 'unknown'],
    ['daemon', 'unset'],
  ])('has the time of its global section: %s', (line, time) => {
    expect(parseFile(`global\n  ${line}\nbackend web\n`)?.hardStop).toBe(time)
  })

  test.each(['', '<html>no</html>', '{}', '{"data":7}'])('is none: %j', (text) => {
    expect(parseFile(text)).toBeUndefined()
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
