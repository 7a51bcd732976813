import { HttpRequestInterceptor } from '@mswjs/interceptors/http'
import { delay, http, HttpResponse } from 'msw'
import { defineNetwork, InterceptorSource } from 'msw/experimental'
import { citrixAdc, type CitrixAdcOptions } from 'drainable/citrix-adc'
import type { MemberRef } from 'drainable/provider'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { shortPauses } from '../../support/short-pauses.js'
import { JsonValue } from '../../../src/kit/json.js'
import { toCounts } from '../../../src/adapters/citrix-adc/codec/rows.js'

/** Answers that the documentation leaves open: each must be read in the careful way. */
const network = defineNetwork({
  sources: [new InterceptorSource({ interceptors: [new HttpRequestInterceptor()] })],
  handlers: [],
  context: { quiet: true },
  onUnhandledFrame: 'error',
})

const ADC = 'https://adc.example'
const NITRO = `${ADC}/nitro/v1`
const WEB1: MemberRef = { pool: 'sg', member: 'web1:80' }
const OK = { errorcode: 0, message: 'Done', severity: 'NONE' }
const STAT = {
  primaryport: 80,
  surgecount: '0',
  svrestablishedconn: '0',
  curreusepool: '0',
}

interface Row {
  readonly servername: string
  readonly ip: string
  readonly svrstate: string
}

const UP: Row = { servername: 'web1', ip: '10.0.0.1', svrstate: 'UP' }

type Answer = (line: string) => Response | Promise<Response>

const seen: string[] = []

/** An appliance with these groups; each answer replaceable by tree and type, or by type. */
function appliance(
  answers: Readonly<Record<string, Answer>> = {},
  groups: Readonly<Record<string, readonly Row[]>> = { sg: [UP] },
) {
  return http.all(`${NITRO}/*`, async ({ request }) => {
    const { pathname, search } = new URL(request.url)
    const [tree = '', type = '', name = ''] = pathname.split('/').slice(3)
    const line = `${request.method} ${tree}/${type}${name === '' ? '' : `/${name}`}${search}`
    seen.push(line)
    const answer = answers[`${tree}/${type}`] ?? answers[type]
    if (answer !== undefined) return answer(line)
    if (type === 'login') return HttpResponse.json({ ...OK, sessionid: '##AB' }, { status: 201 })
    if (type === 'hanode') return HttpResponse.json({ ...OK, hanode: [{ hacurstatus: 'NO' }] })
    const rows = groups[name === '' ? 'sg' : name]
    if (request.method === 'GET' && type.startsWith('servicegroup')) {
      if (rows === undefined) {
        return HttpResponse.json({ errorcode: 258, message: 'No such resource' }, { status: 404 })
      }
      const group = {
        servicegroupname: name || 'sg',
        servicetype: 'HTTP',
        downstateflush: 'ENABLED',
      }
      const servicegroupmember = rows.map(({ ip }) => ({ ...STAT, primaryipaddress: ip }))
      return HttpResponse.json({
        ...OK,
        [type]: type.endsWith('_binding')
          ? rows.map((row) => ({ ...row, port: 80 }))
          : [tree === 'stat' ? { ...group, servicegroupmember } : group],
      })
    }
    return HttpResponse.json(OK)
  })
}

const ctx = {
  signal: new AbortController().signal,
  clock: shortPauses(),
}

function provider(options: Partial<CitrixAdcOptions> = {}) {
  return citrixAdc({ url: ADC, username: 'u', password: 'p', ...options })
}

const drainWeb1 = [{ kind: 'hold', ref: WEB1, to: 'drain' }] as const
const disables = () => seen.filter((line) => line.includes('action=disable'))

beforeAll(() => network.enable())
afterEach(() => {
  network.resetHandlers()
  seen.length = 0
})
afterAll(() => network.disable())

describe('a session', () => {
  test('is not used before it is in its partition', async () => {
    let switched = false
    network.use(
      appliance({
        nspartition: async () => {
          await delay(150)
          switched = true
          return HttpResponse.json(OK)
        },
        hanode: () => {
          expect(switched).toBe(true)
          return HttpResponse.json({ ...OK, hanode: [{ hacurstatus: 'NO' }] })
        },
        clusterinstance: () =>
          HttpResponse.json(switched ? OK : { errorcode: 1, message: 'early' }),
      }),
    )
    await using adc = provider({ partition: 'p1' })
    const first = adc.observe([WEB1], ctx)
    await delay(75) // the login is done, the switch under way
    const [one, other] = await Promise.all([first, adc.observe([WEB1], ctx)])
    expect([one.readings[0]?.present, other.readings[0]?.present]).toEqual([true, true])
    const early = seen.slice(0, seen.findIndex((line) => line.includes('nspartition')) + 2)
    expect(seen.filter((line) => line.includes('nspartition'))).toHaveLength(1)
    expect(early[0]).toContain('login')
  })

  test('takes a token with a broken percent-encoding', async () => {
    const headers = { 'set-cookie': 'NITRO_AUTH_TOKEN=ab%zz; path=/nitro/v1' }
    network.use(appliance({ login: () => HttpResponse.json(OK, { status: 201, headers }) }))
    const adc = provider()
    expect((await adc.observe([WEB1], ctx)).readings[0]?.present).toBe(true)
    await adc.close()
    expect(seen.at(-1)).toBe('POST config/logout')
  })
})

test('a secret in a truncated page is not shown, not even in part', async () => {
  const password = 'correct-horse-battery-staple'
  const page = `${'x'.repeat(185)}${password} was wrong`
  network.use(appliance({ login: () => HttpResponse.html(page, { status: 500 }) }))
  await using adc = provider({ password })
  const failure: unknown = await adc.observe([WEB1], ctx).catch((error: unknown) => error)
  expect(String(failure)).toContain('xxx***')
  expect(String(failure)).not.toContain('correct')
  expect(String(failure).length).toBeLessThan(400)
})

describe('a reading', () => {
  test.each([
    ['an empty object', () => HttpResponse.json({})],
    ['words of a proxy', () => HttpResponse.json({ status: 'starting' })],
    [
      'a failure that calls itself a warning',
      () =>
        HttpResponse.json({ errorcode: 9999, message: 'w', severity: 'WARNING' }, { status: 503 }),
    ],
  ])('is not believed to be empty after %s', async (_, answer) => {
    network.use(
      appliance({
        'config/servicegroup': answer,
        lbvserver: answer,
        servicegroup_servicegroupmember_binding: answer,
      }),
    )
    await using adc = provider()
    await expect(adc.observe([WEB1], ctx)).rejects.toMatchObject({ retryable: true })
  })

  test.each(['n/a', '1,024', null])('a surge queue of %j is not empty', (surgecount) => {
    const row = { svrestablishedconn: '0', curreusepool: '0', surgecount }
    const counts = (): unknown =>
      toCounts(new JsonValue(row, { provider: 'citrix-adc', what: 'GET' }), 'HTTP')
    if (surgecount === null) expect(counts()).toBeUndefined()
    else expect(counts).toThrow('surgecount to be a whole number')
  })

  describe('of a group and a virtual server of one name', () => {
    const service = { name: 'svc1', servicetype: 'HTTP', svrstate: 'UP', port: 80 }
    const both = () =>
      appliance({
        'config/lbvserver': () => HttpResponse.json({ ...OK, lbvserver: [{ name: 'sg' }] }),
        lbvserver_service_binding: () =>
          HttpResponse.json({
            ...OK,
            lbvserver_service_binding: [{ servicename: 'svc1', curstate: 'UP' }],
          }),
        service: () => HttpResponse.json({ ...OK, service: [{ ...service, ...STAT }] }),
      })
    const SVC1 = { pool: 'sg', member: 'svc1' }

    test('reads the members of both', async () => {
      network.use(both())
      await using adc = provider()
      const { readings, pools } = await adc.observe([WEB1, SVC1], ctx)
      expect(readings.map(({ present }) => present)).toEqual([true, true])
      expect(pools).toMatchObject([{ pool: 'sg', serving: 1, total: 1 }])
    })

    test('lists members of both', async () => {
      network.use(both())
      await using adc = provider()
      const { readings, pools } = await adc.observe('all', ctx)
      expect(readings.map(({ ref }) => ref)).toEqual([WEB1, SVC1])
      expect(pools).toHaveLength(1)
    })
  })

  test('says what to allow when a cluster can not be ruled out', async () => {
    network.use(
      appliance({
        clusterinstance: () =>
          HttpResponse.json({ errorcode: 2138, message: 'Not authorized' }, { status: 403 }),
      }),
    )
    await using adc = provider()
    const { readings } = await adc.observe([WEB1], ctx)
    expect(readings[0]).toMatchObject({
      unverified: expect.stringContaining("allow 'show cluster instance'") as string,
    })
  })
})

describe('a change', () => {
  test.each([
    ['no bytes', () => null],
    ['Done', () => JSON.stringify(OK)],
  ])('is refused by a secondary that warns in the header only, with %s', async (_, body) => {
    const headers = { 'x-nitro-warning': '1028 - Not propagated, this is a secondary node' }
    network.use(
      appliance({
        'config/servicegroup': (line) =>
          line.startsWith('POST')
            ? new HttpResponse(body(), { status: 209, headers })
            : HttpResponse.json({ ...OK, servicegroup: [{ servicegroupname: 'sg' }] }),
      }),
    )
    await using adc = provider()
    expect(await adc.apply(drainWeb1, ctx)).toMatchObject([
      { status: 'rejected', error: { code: 'CONFLICT' } },
    ])
  })

  test('is looked for after a 503 that is not from NITRO, and not repeated', async () => {
    network.use(
      appliance({
        'config/servicegroup': (line) =>
          line.startsWith('POST')
            ? HttpResponse.html('<p>upstream reset</p>', { status: 503 })
            : HttpResponse.json({ ...OK, servicegroup: [{ servicegroupname: 'sg' }] }),
      }),
    )
    await using adc = provider()
    expect(await adc.apply(drainWeb1, ctx)).toMatchObject([{ status: 'unknown' }])
    expect(disables()).toHaveLength(1)
  })

  test('knows the disabled servers of each of two pools', async () => {
    const out = { svrstate: 'OUT OF SERVICE' }
    network.use(
      appliance(
        {
          'config/server': (line) =>
            HttpResponse.json({
              ...OK,
              server: [
                line.includes('web1') ? { name: 'web1', state: 'DISABLED' } : { name: 'web2' },
              ],
            }),
        },
        { sg: [{ ...UP, ...out }], other: [{ servername: 'web2', ip: '10.0.0.2', ...out }] },
      ),
    )
    await using adc = provider()
    await adc.apply(
      [...drainWeb1, { kind: 'hold', ref: { pool: 'other', member: 'web2:80' }, to: 'drain' }],
      ctx,
    )
    // It is out because of its server, and its own bit is set nevertheless.
    expect(disables()).toHaveLength(1)
  })

  test('names no number for a cut whose load could not be read', async () => {
    let svrstate = 'GOING OUT OF SERVICE'
    network.use(
      appliance({
        'stat/servicegroup': () => HttpResponse.json(OK),
        servicegroup_servicegroupmember_binding: () =>
          HttpResponse.json({
            ...OK,
            servicegroup_servicegroupmember_binding: [{ ...UP, port: 80, svrstate }],
          }),
        'config/servicegroup': (line) => {
          if (line.startsWith('POST')) svrstate = 'OUT OF SERVICE'
          return HttpResponse.json({
            ...OK,
            servicegroup: [{ servicegroupname: 'sg', downstateflush: 'ENABLED' }],
          })
        },
      }),
    )
    await using adc = provider()
    const [result] = await adc.apply([{ kind: 'terminate', ref: WEB1 }], ctx)
    expect(result).toEqual({ ref: WEB1, status: 'applied' })
  })
})
