import { HttpRequestInterceptor } from '@mswjs/interceptors/http'
import { http, HttpResponse } from 'msw'
import { defineNetwork, InterceptorSource } from 'msw/experimental'
import { f5Bigip, type F5BigipOptions } from 'drainable/f5-bigip'
import type { PresentReading } from 'drainable/provider'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ctx, WEB1 } from './rig.js'

/** A device with answers written by hand, for replies that no fake would send. */
const network = defineNetwork({
  sources: [new InterceptorSource({ interceptors: [new HttpRequestInterceptor()] })],
  handlers: [],
  context: { quiet: true },
  onUnhandledFrame: 'error',
})

const BIGIP = 'https://bigip.example'
const seen: { readonly host: string; readonly line: string }[] = []

const MEMBER = {
  name: '10.0.0.1:80',
  partition: 'Common',
  fullPath: '/Common/10.0.0.1:80',
  address: '10.0.0.1',
  ephemeral: 'false',
  session: 'monitor-enabled',
  state: 'up',
}
const COUNTERS = {
  nodeName: { description: '/Common/10.0.0.1' },
  poolName: { description: '/Common/web' },
  port: { value: 80 },
  'serverside.curConns': { value: 0 },
  'serverside.totConns': { value: 5 },
  totRequests: { value: 7 },
  'connq.depth': { value: 0 },
  curSessions: { value: 0 },
  'status.enabledState': { description: 'enabled' },
}

const row = (nested: object): object => ({ entries: { x: { nestedStats: { entries: nested } } } })
const words = (fields: Record<string, string>): object =>
  row(Object.fromEntries(Object.entries(fields).map(([k, description]) => [k, { description }])))

const READY = { configReady: 'yes', licenseReady: 'yes', provisionReady: 'yes' }

/** What a device in good order answers, by path; each can be replaced. */
function device(answers: Readonly<Record<string, () => Response>> = {}): void {
  const usual: Readonly<Record<string, () => Response>> = {
    '/mgmt/shared/authn/login': () =>
      HttpResponse.json({ token: { token: 'TOKEN', timeout: 1200 } }),
    '/mgmt/shared/authz/tokens/TOKEN': () => HttpResponse.json({}),
    '/mgmt/tm/cm/failover-status': () => HttpResponse.json(words({ status: 'ACTIVE' })),
    '/mgmt/tm/sys/failover': () =>
      HttpResponse.json({ apiRawValues: { apiAnonymous: 'Failover active for 0d 01:00:00\n' } }),
    '/mgmt/tm/sys/ready': () => HttpResponse.json(words(READY)),
    '/mgmt/tm/ltm/pool/~Common~web': () =>
      HttpResponse.json({ fullPath: '/Common/web', serviceDownAction: 'none' }),
    '/mgmt/tm/ltm/pool/~Common~web/members': () => HttpResponse.json({ items: [MEMBER] }),
    '/mgmt/tm/ltm/pool/~Common~web/members/stats': () => HttpResponse.json(row(COUNTERS)),
  }
  const all = { ...usual, ...answers }
  network.use(
    http.all(/.*/, ({ request }) => {
      const url = new URL(request.url)
      seen.push({ host: url.host, line: `${request.method} ${url.pathname}${url.search}` })
      return (
        all[url.pathname]?.() ?? HttpResponse.json({ code: 404, message: 'no' }, { status: 404 })
      )
    }),
  )
}

beforeAll(() => network.enable())
afterAll(() => network.disable())
afterEach(() => {
  network.resetHandlers()
  seen.length = 0
})

function open(options: Partial<F5BigipOptions> = {}) {
  return f5Bigip({
    url: BIGIP,
    username: 'admin',
    password: 'pa"ss',
    freshness: 0,
    callTimeout: 2_000,
    ...options,
  })
}

async function look(answers: Readonly<Record<string, () => Response>> = {}) {
  device(answers)
  await using lb = open()
  const { readings } = await lb.observe([WEB1], ctx())
  return readings[0]!
}

const html = (status: number, title: string): Response =>
  new HttpResponse(`<html><head><title>${title}</title></head></html>`, { status })

describe('readings', () => {
  test('of a device in order are complete', async () => {
    expect(await look()).toMatchObject({
      present: true,
      own: 'ready',
      serves: true,
      maint: 'gentle',
      scopes: [{ state: 'read', active: 0, queued: 0, arrivals: 12, admin: 'ready' }],
    })
  })

  test.each([
    ['no entries', () => HttpResponse.json({ kind: 'x' })],
    ['no row for it', () => HttpResponse.json({ entries: {} })],
    ['text in place of rows', () => HttpResponse.json({ apiRawValues: { apiAnonymous: '' } })],
    [
      'a negative count',
      () => HttpResponse.json(row({ ...COUNTERS, 'connq.depth': { value: -1 } })),
    ],
    [
      'a count as text',
      () => HttpResponse.json(row({ ...COUNTERS, 'serverside.curConns': { description: '0' } })),
    ],
  ])('statistics with %s are unread, never 0', async (_what, stats) => {
    const reading = await look({ '/mgmt/tm/ltm/pool/~Common~web/members/stats': stats })
    expect(reading.scopes).toMatchObject([{ state: 'unread' }])
  })

  test('without a requests counter idle rests on the weaker proof', async () => {
    const rest = Object.fromEntries(
      Object.entries(COUNTERS).filter(([name]) => name !== 'totRequests'),
    )
    const stats = {
      '/mgmt/tm/ltm/pool/~Common~web/members/stats': () => HttpResponse.json(row(rest)),
    }
    const [scope] = (await look(stats)).scopes
    expect(scope).toMatchObject({ state: 'read', active: 0 })
    expect(scope).not.toHaveProperty('arrivals')
  })

  test('a pool with a serviceDownAction has no gentle maint', async () => {
    const reading = (await look({
      '/mgmt/tm/ltm/pool/~Common~web': () =>
        HttpResponse.json({ fullPath: '/Common/web', serviceDownAction: 'reset' }),
    })) as PresentReading
    expect(reading.maint).toBe('unknown')
    expect(reading.hints?.join()).toContain('serviceDownAction reset')
  })

  test('an unknown session is not guessed', async () => {
    const members = () => HttpResponse.json({ items: [{ ...MEMBER, session: 'user-parked' }] })
    expect(await look({ '/mgmt/tm/ltm/pool/~Common~web/members': members })).toMatchObject({
      own: 'unknown',
      serves: false,
    })
  })

  test('a device that does not tell its role is taken for a single one', async () => {
    const no = () => HttpResponse.json({ code: 403, message: 'no right' }, { status: 403 })
    const reading = await look({ '/mgmt/tm/cm/failover-status': no, '/mgmt/tm/sys/failover': no })
    expect(reading).toMatchObject({ present: true, scopes: [{ state: 'read' }] })
  })

  test('a unit that is active for another traffic group is not used', async () => {
    device({
      '/mgmt/tm/cm/failover-status': () =>
        HttpResponse.json(
          row({
            status: { description: 'ACTIVE' },
            details: {
              nestedStats: {
                entries: {
                  0: {
                    nestedStats: {
                      entries: { details: { description: 'active for /Common/traffic-group-2' } },
                    },
                  },
                },
              },
            },
          }),
        ),
    })
    await using first = open({ trafficGroup: 'traffic-group-1' })
    await expect(first.observe([WEB1], ctx())).rejects.toThrow(/no unit is active/)
    await using second = open({ trafficGroup: '/Common/traffic-group-2' })
    expect((await second.observe([WEB1], ctx())).readings).toMatchObject([{ present: true }])
  })

  test('a role that changes while it is read makes the look worthless', async () => {
    const standby = () =>
      HttpResponse.json({ apiRawValues: { apiAnonymous: 'Failover standby for 0d 00:00:00\n' } })
    await expect(look({ '/mgmt/tm/sys/failover': standby })).rejects.toMatchObject({
      code: 'CONFLICT',
      retryable: true,
    })
  })
})

describe('absence of a member', () => {
  const MEMBERS = '/mgmt/tm/ltm/pool/~Common~web/members'
  const missing = () =>
    HttpResponse.json(
      { code: 404, message: '01020036:3: The requested Pool (/Common/web) was not found.' },
      { status: 404 },
    )

  test('is believed from a device that is ready, read twice', async () => {
    expect(await look({ [MEMBERS]: missing })).toMatchObject({ present: false })
    const lines = seen.map(({ line }) => line.split('?')[0])
    expect(lines.filter((line) => line === `GET ${MEMBERS}`)).toHaveLength(2)
    expect(lines).toContain('GET /mgmt/tm/sys/ready')
  })

  test('is not believed while the configuration loads', async () => {
    const loading = () => HttpResponse.json(words({ ...READY, configReady: 'no' }))
    const call = look({ [MEMBERS]: missing, '/mgmt/tm/sys/ready': loading })
    await expect(call).rejects.toMatchObject({ code: 'CONFLICT', retryable: true })
  })

  test('a member that comes back between the two reads is there', async () => {
    const answers = [missing, () => HttpResponse.json({ items: [MEMBER] })]
    const reading = await look({ [MEMBERS]: () => answers.shift()!() })
    expect(reading.present).toBe(true)
  })

  test.each([
    [
      'a path that is not registered',
      () =>
        HttpResponse.json(
          { code: 404, message: 'URI path /mgmt/tm/ltm/pool not registered.' },
          { status: 404 },
        ),
    ],
    ['a web server of its own', () => html(404, '404 Not Found')],
    ['a restart', () => html(503, 'Configuration Utility restarting...')],
    [
      'mcpd',
      () =>
        HttpResponse.json({
          code: 500,
          message: 'The connection to mcpd has been lost, try again.',
        }),
    ],
  ])('is not believed with %s', async (_what, answer) => {
    await expect(look({ [MEMBERS]: answer })).rejects.toMatchObject({
      code: 'CONFLICT',
      retryable: true,
    })
  })

  test('is not believed with a login page in place of JSON', async () => {
    await expect(look({ [MEMBERS]: () => html(200, 'BIG-IP Login') })).rejects.toMatchObject({
      code: 'MALFORMED_REPLY',
    })
  })
})

describe('a reply of a device', () => {
  test('never leads elsewhere: of nextLink only the query is used', async () => {
    const second = {
      ...MEMBER,
      name: '10.0.0.2:80',
      fullPath: '/Common/10.0.0.2:80',
      address: '10.0.0.2',
    }
    const pages = [
      { items: [second], nextLink: 'https://evil.example/steal?$top=1&$skip=1&ver=15.1.10' },
      { items: [MEMBER] },
    ]
    const reading = await look({
      '/mgmt/tm/ltm/pool/~Common~web/members': () => HttpResponse.json(pages.shift()),
    })
    expect(reading.present).toBe(true)
    expect(new Set(seen.map(({ host }) => host))).toEqual(new Set(['bigip.example']))
    expect(seen.some(({ line }) => line.includes('$skip=1'))).toBe(true)
  })

  test('that points at itself as the next page is read once', async () => {
    const members = () =>
      HttpResponse.json({ items: [MEMBER], nextLink: 'https://localhost/x?$skip=1' })
    expect((await look({ '/mgmt/tm/ltm/pool/~Common~web/members': members })).present).toBe(true)
  })

  test('is not followed if it redirects', async () => {
    const away = () =>
      new HttpResponse(null, { status: 302, headers: { location: 'https://evil.example/' } })
    await expect(look({ '/mgmt/tm/ltm/pool/~Common~web/members': away })).rejects.toMatchObject({
      code: 'REJECTED',
    })
    expect(seen.every(({ host }) => host === 'bigip.example')).toBe(true)
  })

  test('that repeats secrets shows none in an error', async () => {
    const echo = () =>
      HttpResponse.json(
        { code: 400, message: 'bad request: {"password":"pa\\"ss"} token TOKEN' },
        { status: 400 },
      )
    const error: unknown = await look({ '/mgmt/tm/ltm/pool/~Common~web/members': echo }).catch(
      (e: unknown) => e,
    )
    expect(String(error)).toContain('bad request')
    expect(String(error)).not.toMatch(/pa\\?"ss|TOKEN/)
  })
})
