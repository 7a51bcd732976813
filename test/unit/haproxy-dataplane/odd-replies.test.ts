import { HttpRequestInterceptor } from '@mswjs/interceptors/http'
import { drain, isDrainableError } from 'drainable'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import { http, HttpResponse, type HttpHandler } from 'msw'
import { defineNetwork, InterceptorSource } from 'msw/experimental'
import { Agent } from 'undici'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ioClock } from '../../support/io-clock.js'
import { change, context, present } from '../../support/dataplane.js'

const network = defineNetwork({
  sources: [new InterceptorSource({ interceptors: [new HttpRequestInterceptor()] })],
  handlers: [],
  context: { quiet: true },
})
beforeAll(() => network.enable())
afterEach(() => network.resetHandlers())
afterAll(() => network.disable())

const URL_BASE = 'https://lb.test:5555'
const API = `${URL_BASE}/v3/services/haproxy`
const WEB1 = { pool: 'web', member: 'web1' }

const ROW = {
  status: 'UP',
  scur: 0,
  qcur: 0,
  stot: 5,
  wretr: 0,
  weight: 1,
  act: 1,
  bck: 0,
  addr: '10.0.0.1:80',
}
const row = (stats: object, name = 'web1') => ({ type: 'server', backend_name: 'web', name, stats })
const info = (body: object = {}) => ({
  info: { pid: 7, uptime: 100, node: 'lb', version: '3.2.26', ...body },
  runtimeAPI: '/run/lb/master.sock',
})
const server = (admin: string, name = 'web1') => ({
  name,
  id: '1',
  address: '10.0.0.1',
  port: 80,
  admin_state: admin,
  operational_state: 'up',
})

/** An API in good order; each test puts odd replies in front of it. */
const GOOD: readonly HttpHandler[] = [
  http.get(`${URL_BASE}/v3/info`, () =>
    HttpResponse.json({ api: { version: 'v3.2.13 8fbfd30f' }, system: {} }),
  ),
  http.get(`${API}/runtime/info`, () => HttpResponse.json(info())),
  http.get(`${API}/stats/native`, () =>
    HttpResponse.json({ runtimeAPI: 'x@1', stats: [row(ROW)] }),
  ),
  http.get(`${API}/runtime/backends/web/servers`, () => HttpResponse.json([server('ready')])),
  http.get(`${API}/configuration/*`, () => HttpResponse.json({}, { status: 403 })),
]

function play(...odd: readonly HttpHandler[]) {
  network.use(...odd, ...GOOD)
  return haproxyDataplane({
    url: URL_BASE,
    username: 'admin',
    password: 'swordfish',
    maintCuts: false,
    tls: { insecure: true },
    callTimeout: '1s',
  })
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  const error: unknown = await call.then(
    () => new Error('no failure'),
    (e: unknown) => e,
  )
  if (!isDrainableError(error)) throw error
  expect(error.message).not.toContain('swordfish')
  return error.code
}

const stats = (stats: unknown) =>
  http.get(`${API}/stats/native`, () => HttpResponse.json({ runtimeAPI: 'x@1', stats } as object))

describe('malformed replies', () => {
  test.each<[string, HttpHandler | readonly HttpHandler[], string]>([
    ['a row without scur', stats([row({ ...ROW, scur: undefined })]), 'MALFORMED_REPLY'],
    ['a row without qcur', stats([row({ ...ROW, qcur: undefined })]), 'MALFORMED_REPLY'],
    ['a count that is a text', stats([row({ ...ROW, scur: '0' })]), 'MALFORMED_REPLY'],
    ['a row without a status', stats([row({ ...ROW, status: undefined })]), 'MALFORMED_REPLY'],
    ['rows that are not rows', stats(['web1']), 'MALFORMED_REPLY'],
    ['statistics that are null', stats(null), 'MALFORMED_REPLY'],
    [
      'statistics of no process',
      http.get(`${API}/stats/native`, () => HttpResponse.json([])),
      'UNREACHABLE',
    ],
    [
      'an error in the place of statistics',
      http.get(`${API}/stats/native`, () =>
        HttpResponse.json({ runtimeAPI: 'x', error: 'dial unix: refused' }),
      ),
      'UNREACHABLE',
    ],
    [
      'the same with status 500',
      http.get(`${API}/stats/native`, () =>
        HttpResponse.json({ runtimeAPI: 'x', error: 'dial unix' }, { status: 500 }),
      ),
      'UNREACHABLE',
    ],
    [
      'process info without a pid',
      http.get(`${API}/runtime/info`, () => HttpResponse.json(info({ pid: undefined }))),
      'MALFORMED_REPLY',
    ],
    [
      'process info of a HAProxy that gave no answer',
      http.get(`${API}/runtime/info`, () =>
        HttpResponse.json({ info: { release_date: '0001-01-01' }, runtimeAPI: 'x' }),
      ),
      'UNREACHABLE',
    ],
    [
      'an error with status 200 from process info',
      http.get(`${API}/runtime/info`, () =>
        HttpResponse.json({ error: 'dial unix', runtimeAPI: 'x' }),
      ),
      'UNREACHABLE',
    ],
    [
      'no process at all',
      http.get(`${API}/runtime/info`, () => HttpResponse.json([])),
      'UNREACHABLE',
    ],
    [
      'a server list cut in the middle',
      [
        stats([row({ ...ROW, status: 'DOWN' })]),
        http.get(`${API}/runtime/backends/web/servers`, () => new HttpResponse('[{"name":"web')),
      ],
      'CONNECTION_LOST',
    ],
    [
      'an empty body',
      http.get(`${API}/stats/native`, () => new HttpResponse('')),
      'MALFORMED_REPLY',
    ],
    [
      'a redirect',
      http.get(`${API}/stats/native`, () => HttpResponse.redirect('https://elsewhere.test/', 302)),
      'REJECTED',
    ],
    [
      '502 from a proxy',
      http.get(
        `${API}/stats/native`,
        () => new HttpResponse('<h1>Bad Gateway</h1>', { status: 502 }),
      ),
      'UNREACHABLE',
    ],
    [
      '403 from a proxy',
      http.get(`${API}/stats/native`, () => new HttpResponse('no', { status: 403 })),
      'FORBIDDEN',
    ],
    [
      'a connection that breaks',
      http.get(`${API}/stats/native`, () => HttpResponse.error()),
      'CONNECTION_LOST',
    ],
  ])('%s', async (_what, handler, code) => {
    const handlers = [handler].flat()
    await using lb = play(...handlers)
    expect(await codeOf(lb.observe([WEB1], context()))).toBe(code)
  })

  test('control characters of a reply reach no message', async () => {
    await using lb = play(
      http.get(
        `${API}/stats/native`,
        () => new HttpResponse('\u001b[2J\u0007boo', { status: 500 }),
      ),
    )
    const error: unknown = await lb.observe([WEB1], context()).catch((e: unknown) => e)
    expect((error as Error).message).toContain("'[2J boo'")
  })

  test('a URL without a Data Plane API is told so', async () => {
    await using lb = play(
      http.get(`${URL_BASE}/v3/info`, () => new HttpResponse('', { status: 404 })),
      http.get(`${URL_BASE}/v2/info`, () => new HttpResponse('', { status: 404 })),
    )
    expect(await codeOf(lb.describe(context()))).toBe('NOT_FOUND')
  })
})

describe('odd but valid replies', () => {
  test('are those of a plain build with an unusual version', async () => {
    await using lb = play(
      http.get(`${URL_BASE}/v3/info`, () => HttpResponse.json({ api: { version: ' dev.dirty' } })),
    )
    expect((await lb.describe(context())).version).toBe('3.2.26 (Data Plane API dev.dirty)')
    expect((await present(lb, WEB1)).own).toBe('ready')
  })

  test('have unknown keys and an unknown status text', async () => {
    await using lb = play(
      stats([
        row({ ...ROW, status: 'DRAIN (agent)', surprise: { deep: 1 } }),
        { ...row(ROW, 'x'), type: 'listener' },
      ]),
      http.get(`${API}/runtime/backends/web/servers`, () =>
        HttpResponse.json([{ ...server('drain'), surprise: 1 }]),
      ),
    )
    expect(await present(lb, WEB1)).toMatchObject({ own: 'drain', serves: false })
  })

  test('are absence without a rows key, from a HAProxy that is well', async () => {
    await using lb = play(
      http.get(`${API}/stats/native`, () => HttpResponse.json({ runtimeAPI: 'x@1' })),
      http.get(`${API}/runtime/backends/web/servers`, () => HttpResponse.json([])),
    )
    const { readings } = await lb.observe([WEB1], context())
    expect(readings).toEqual([{ ref: WEB1, present: false, scopes: [] }])
  })

  test.each([
    ['of the statistics', ROW.addr, { address: '10.0.0.1', port: 80, identity: '10.0.0.1:80' }],
    ['of none', undefined, { address: '10.0.0.1', identity: '10.0.0.1' }],
  ])('have no port 0 where a row is without its port: that %s', async (_, addr, is) => {
    await using lb = play(
      stats([row({ ...ROW, status: 'DOWN', addr })]),
      http.get(`${API}/runtime/backends/web/servers`, () =>
        HttpResponse.json([{ ...server('ready'), port: undefined }]),
      ),
    )
    const reading = await present(lb, WEB1)
    const { address, port, identity } = reading
    expect({ address, ...(port === undefined ? {} : { port }), identity }).toEqual(is)
  })

  test('count for nothing if the pid changes within a look', async () => {
    let pid = 7
    let answers = 0
    await using lb = play(
      http.get(`${API}/runtime/info`, () => {
        answers++
        return HttpResponse.json(info({ pid: pid++ }))
      }),
    )
    expect(await codeOf(lb.observe([WEB1], context()))).toBe('CONFLICT')
    expect(answers).toBe(4)
  })
})

const twoInfos = http.get(`${API}/runtime/info`, () =>
  HttpResponse.json([info({ pid: 7 }), info({ pid: 8 })]),
)
const twoStats = http.get(`${API}/stats/native`, () =>
  HttpResponse.json([3, 0].map((scur) => ({ runtimeAPI: 'x', stats: [row({ ...ROW, scur })] }))),
)

describe('several HAProxy processes at once', () => {
  test.each([
    ['process info', [twoInfos]],
    ['the statistics', [twoStats]],
    ['both', [twoInfos, twoStats]],
  ])('are refused in words, told by %s', async (_what, handlers) => {
    await using lb = play(...handlers)
    const told = expect.objectContaining({
      code: 'UNSUPPORTED',
      message: expect.stringMatching(/2 HAProxy processes .*\bnbproc\b.* 2\.6/) as string,
    }) as Error
    await expect(lb.observe([WEB1], context())).rejects.toEqual(told)
  })

  test('are refused by describe, before anything is changed', async () => {
    await using lb = play(twoInfos)
    expect(await codeOf(lb.describe(context()))).toBe('UNSUPPORTED')
  })

  test('end a drain that they come into, never as idle', async () => {
    let held = false
    const busy = { runtimeAPI: 'x', stats: [row({ ...ROW, scur: 3 })] }
    const idle = { runtimeAPI: 'x', stats: [row({ ...ROW, status: 'DRAIN' })] }
    await using lb = play(
      http.get(`${API}/stats/native`, () => HttpResponse.json(held ? [idle, idle] : busy)),
      http.put(`${API}/runtime/backends/web/servers/web1`, () => {
        held = true
        return HttpResponse.json(server('drain'))
      }),
    )
    using clock = ioClock()
    const run = drain(lb, WEB1, { timeout: '10s', keepReady: 0, clock })
    expect(await codeOf(clock.run(run))).toBe('UNSUPPORTED')
    expect(held).toBe(true)
  })
})

describe('a 200 to a change', () => {
  test('is not believed if the second look shows another state', async () => {
    await using lb = play(
      http.put(`${API}/runtime/backends/web/servers/web1`, () =>
        HttpResponse.json(server('drain')),
      ),
    )
    const result = await change(lb, { kind: 'hold', ref: WEB1, to: 'drain' })
    expect(result.status).toBe('rejected')
  })

  test('to an undo without effect leads through maint', async () => {
    const sent: string[] = []
    let state = 'DRAIN'
    const admin = () => (state === 'UP' ? 'ready' : 'drain')
    await using lb = play(
      http.get(`${API}/stats/native`, () =>
        HttpResponse.json({ runtimeAPI: 'x@1', stats: [row({ ...ROW, status: state })] }),
      ),
      http.get(`${API}/runtime/backends/web/servers`, () => HttpResponse.json([server(admin())])),
      http.put(`${API}/runtime/backends/web/servers/web1`, async ({ request }) => {
        const { admin_state: to } = (await request.json()) as { admin_state: string }
        if (sent.at(-1) === 'maint') state = 'UP'
        sent.push(to)
        return HttpResponse.json(server(to))
      }),
    )
    const result = await change(lb, { kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' })
    expect(result.status).toBe('applied')
    expect(sent).toEqual(['ready', 'maint', 'ready'])
  })

  test('is requested with nothing but the state', async () => {
    let body: unknown
    await using lb = play(
      http.put(`${API}/runtime/backends/web/servers/web1`, async ({ request }) => {
        body = await request.json()
        return HttpResponse.json(server('drain'))
      }),
    )
    await change(lb, { kind: 'hold', ref: WEB1, to: 'drain' })
    expect(body).toEqual({ admin_state: 'drain' })
  })
})

test('a version that a proxy drops is asked for before the line', async () => {
  const asked: string[] = []
  network.use(
    http.get(`${API}/configuration/version`, () => {
      asked.push('version')
      return HttpResponse.json(41)
    }),
    http.get(`${API}/configuration/raw`, () =>
      HttpResponse.text('backend web\n  server web1 10.0.0.1:80 cookie a\n'),
    ),
    http.get(`${API}/configuration/backends/web/servers/web1`, () => {
      asked.push('line')
      return HttpResponse.json({ name: 'web1', address: '10.0.0.1', port: 80, cookie: 'a' })
    }),
    http.put(`${API}/configuration/backends/web/servers/web1`, async ({ request }) => {
      asked.push(`${new URL(request.url).search} ${await request.text()}`)
      return HttpResponse.json({})
    }),
    http.put(`${API}/runtime/backends/web/servers/web1`, () => HttpResponse.json(server('drain'))),
    ...GOOD,
  )
  await using lb = haproxyDataplane({
    url: URL_BASE,
    username: 'a',
    password: 'b',
    durable: true,
    maintCuts: false,
  })
  await change(lb, { kind: 'hold', ref: WEB1, to: 'drain' })
  expect(asked.slice(0, 4)).toEqual([
    'line',
    'version',
    'line',
    '?version=41 {"name":"web1","address":"10.0.0.1","port":80,"cookie":"a","weight":0}',
  ])
})

test("the caller's dispatcher is used, and not closed", async () => {
  network.use(...GOOD)
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })
  const lb = haproxyDataplane({
    url: URL_BASE,
    username: 'a',
    password: 'b',
    maintCuts: false,
    dispatcher,
  })
  expect((await present(lb, WEB1)).own).toBe('ready')
  await lb.close()
  expect(dispatcher.closed).toBe(false)
  await dispatcher.close()
})
