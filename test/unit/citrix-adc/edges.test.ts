import { HttpRequestInterceptor } from '@mswjs/interceptors/http'
import { http, HttpResponse } from 'msw'
import { defineNetwork, InterceptorSource } from 'msw/experimental'
import { citrixAdc, type CitrixAdcOptions } from 'drainable/citrix-adc'
import type { MemberRef, PresentReading, Snapshot } from 'drainable/provider'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { shortPauses } from '../../support/short-pauses.js'

/** An appliance of answers written by hand: for what no fake and no build would send by itself. */
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

const GROUP = {
  servicegroupname: 'sg',
  servicetype: 'HTTP',
  downstateflush: 'ENABLED',
  state: 'ENABLED',
}
const MEMBER = {
  servicegroupname: 'sg',
  ip: '10.0.0.1',
  port: 80,
  svrstate: 'UP',
  weight: '1',
  servername: 'web1',
}
const STAT = {
  primaryipaddress: '10.0.0.1',
  primaryport: 80,
  state: 'UP',
  surgecount: '0',
  svrestablishedconn: '0',
  curreusepool: '0',
}

interface Seen {
  readonly line: string
  readonly cookie: string | null
  readonly user: string | null
  readonly body: string
}

const seen: Seen[] = []

/** Everything a reading takes, each answer replaceable by its type. */
function appliance(answers: Readonly<Record<string, (seen: Seen) => Response>> = {}) {
  const usual: Readonly<Record<string, (seen: Seen) => Response>> = {
    login: () =>
      HttpResponse.json(
        { ...OK, sessionid: '##A+B/C' },
        {
          status: 201,
          headers: { 'set-cookie': 'NITRO_AUTH_TOKEN=%23%23A%2BB%2FC; path=/nitro/v1' },
        },
      ),
    clusterinstance: () => HttpResponse.json(OK),
    hanode: () => HttpResponse.json({ ...OK, hanode: [{ hacurstatus: 'NO' }] }),
    system: () => HttpResponse.json({ ...OK, system: { starttime: 'Fri Nov 20 07:00:00 2026' } }),
    'config/servicegroup': () => HttpResponse.json({ ...OK, servicegroup: [GROUP] }),
    servicegroup_servicegroupmember_binding: () =>
      HttpResponse.json({ ...OK, servicegroup_servicegroupmember_binding: [MEMBER] }),
    'stat/servicegroup': () =>
      HttpResponse.json({
        ...OK,
        servicegroup: [{ servicegroupname: 'sg', servicegroupmember: [STAT] }],
      }),
    ...answers,
  }
  return http.all(`${NITRO}/*`, async ({ request }) => {
    const [tree, type] = new URL(request.url).pathname.split('/').slice(3)
    const one: Seen = {
      line: `${request.method} ${tree ?? ''}/${type ?? ''}${new URL(request.url).search}`,
      cookie: request.headers.get('cookie'),
      user: request.headers.get('x-nitro-user'),
      body: await request.text(),
    }
    seen.push(one)
    const answer = usual[`${tree ?? ''}/${type ?? ''}`] ?? usual[type ?? '']
    const nobody = { errorcode: 258, message: 'No such resource', severity: 'ERROR' }
    return answer?.(one) ?? HttpResponse.json(nobody, { status: 404 })
  })
}

const ctx = {
  signal: new AbortController().signal,
  clock: shortPauses(),
}

function provider(options: Partial<CitrixAdcOptions> = {}) {
  return citrixAdc({ url: ADC, username: 'u', password: 'p', ...options })
}

async function look(refs: readonly MemberRef[] = [WEB1]): Promise<Snapshot> {
  await using adc = provider()
  return await adc.observe(refs, ctx)
}

async function present(): Promise<PresentReading> {
  const [reading] = (await look()).readings
  if (reading?.present !== true) throw new Error('not present')
  return reading
}

beforeAll(() => network.enable())
afterEach(() => {
  network.resetHandlers()
  seen.length = 0
})
afterAll(() => network.disable())

describe('logging in', () => {
  test('sends the token back as Set-Cookie had it, and logs out', async () => {
    network.use(appliance())
    await look()
    expect(seen[0]).toMatchObject({
      line: 'POST config/login',
      cookie: null,
      body: '{"login":{"username":"u","password":"p","timeout":900}}',
    })
    expect(new Set(seen.slice(1).map(({ cookie }) => cookie))).toEqual(
      new Set(['NITRO_AUTH_TOKEN=%23%23A%2BB%2FC']),
    )
    expect(seen.at(-1)).toMatchObject({ line: 'POST config/logout', body: '{"logout":{}}' })
  })

  test('takes the token of a body that comes without a cookie', async () => {
    network.use(
      appliance({ login: () => HttpResponse.json({ ...OK, sessionid: '##X/Y' }, { status: 201 }) }),
    )
    await look()
    expect(seen.at(-1)?.cookie).toBe('NITRO_AUTH_TOKEN=%23%23X%2FY')
  })

  test('asks for no length of session where the appliance allows less', async () => {
    network.use(
      appliance({
        login: ({ body }) =>
          body.includes('timeout')
            ? HttpResponse.json({ errorcode: 1219, message: 'Invalid Timeout' }, { status: 599 })
            : HttpResponse.json({ ...OK, sessionid: '##X' }, { status: 201 }),
      }),
    )
    await expect(present()).resolves.toMatchObject({ own: 'ready' })
  })

  test.each([
    [354, 'UNAUTHENTICATED'],
    [1046, 'UNAUTHENTICATED'],
    [2138, 'UNAUTHENTICATED'],
  ])('errorcode %i ends it with %s and no word of the password', async (errorcode, code) => {
    const message = 'Invalid password "s3cret/#"'
    network.use(
      appliance({ login: () => HttpResponse.json({ errorcode, message }, { status: 401 }) }),
    )
    await using adc = provider({ password: 's3cret/#' })
    const failure: unknown = await adc.observe([WEB1], ctx).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code })
    expect(String(failure)).not.toContain('s3cret')
    expect(seen).toHaveLength(1)
  })

  test('a rotated password is asked for once more', async () => {
    const passwords = ['old', 'new']
    network.use(
      appliance({
        login: ({ body }) =>
          body.includes('"new"')
            ? HttpResponse.json({ ...OK, sessionid: '##X' }, { status: 201 })
            : HttpResponse.json({ errorcode: 354, message: 'no' }, { status: 401 }),
      }),
    )
    await using adc = provider({ password: () => passwords.shift() ?? 'new' })
    expect((await adc.observe([WEB1], ctx)).readings).toHaveLength(1)
  })

  test('headers go without a cookie, and never where they are switched off', async () => {
    network.use(appliance())
    await using adc = provider({ auth: 'headers' })
    await adc.observe([WEB1], ctx)
    expect(new Set(seen.map(({ cookie, user }) => `${String(cookie)} ${String(user)}`))).toEqual(
      new Set(['null u']),
    )
    await adc.close()
    expect(seen.some(({ line }) => /log(in|out)/.test(line))).toBe(false)
    network.use(
      appliance({
        clusterinstance: () =>
          HttpResponse.json({ errorcode: 1244, message: 'off' }, { status: 401 }),
      }),
    )
    await using off = provider({ auth: 'headers' })
    await expect(off.observe([WEB1], ctx)).rejects.toThrow(/use auth: 'session'/)
  })

  test('an ended session that ends again right after a new login is no endless story', async () => {
    network.use(
      appliance({
        clusterinstance: () =>
          HttpResponse.json({ errorcode: 444, message: 'expired' }, { status: 401 }),
      }),
    )
    await expect(look()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
    expect(seen.filter(({ line }) => line.endsWith('/login'))).toHaveLength(2)
  })
})

describe('readings', () => {
  test('objects in place of lists, texts in place of numbers', async () => {
    network.use(
      appliance({
        'config/servicegroup': () => HttpResponse.json({ ...OK, servicegroup: GROUP }),
        servicegroup_servicegroupmember_binding: () =>
          HttpResponse.json({
            ...OK,
            servicegroup_servicegroupmember_binding: { ...MEMBER, port: '80' },
          }),
        'stat/servicegroup': () =>
          HttpResponse.json({
            ...OK,
            servicegroup: {
              servicegroupmember: { ...STAT, primaryport: '80', svrestablishedconn: 3 },
            },
          }),
      }),
    )
    expect(await present()).toMatchObject({ own: 'ready', scopes: [{ state: 'read', active: 3 }] })
  })

  test('no key, no members: absent is proved', async () => {
    network.use(appliance({ servicegroup_servicegroupmember_binding: () => HttpResponse.json(OK) }))
    expect(await look()).toMatchObject({
      readings: [{ present: false }],
      pools: [{ pool: 'sg', serving: 0, total: 0 }],
    })
  })

  test.each([
    ['an empty body', () => new HttpResponse(null, { status: 200 })],
    ['a page of a proxy', () => HttpResponse.html('<p>Loading</p>')],
    ['a 404 without NITRO', () => HttpResponse.html('<p>Not found</p>', { status: 404 })],
    ['a list in place of a reply', () => HttpResponse.json([])],
  ])('%s proves nothing', async (_, answer) => {
    network.use(appliance({ servicegroup_servicegroupmember_binding: answer }))
    await expect(look()).rejects.toMatchObject({ code: 'MALFORMED_REPLY', retryable: true })
  })

  test('a member that stat leaves out is asked for alone, and is unread where that fails', async () => {
    const without = () => HttpResponse.json({ ...OK, servicegroup: [{ servicegroupname: 'sg' }] })
    network.use(appliance({ 'stat/servicegroup': without }))
    expect((await present()).scopes).toMatchObject([{ state: 'unread', inForce: false }])
    expect(seen.map(({ line }) => line)).toContain(
      'GET stat/servicegroupmember?args=servicegroupname:sg,servername:web1,port:80',
    )
    const alone = () =>
      HttpResponse.json({ ...OK, servicegroupmember: [{ ...STAT, svrestablishedconn: '2' }] })
    network.use(appliance({ 'stat/servicegroup': without, servicegroupmember: alone }))
    expect((await present()).scopes).toMatchObject([{ state: 'read', active: 2 }])
  })

  test('a build without the nested form is asked for each member', async () => {
    const no = () =>
      HttpResponse.json({ errorcode: 1090, message: 'No such argument' }, { status: 599 })
    const alone = () =>
      HttpResponse.json({ ...OK, servicegroupmember: [{ ...STAT, surgecount: '4' }] })
    network.use(appliance({ 'stat/servicegroup': no, servicegroupmember: alone }))
    expect((await present()).scopes).toMatchObject([{ state: 'read', queued: 4 }])
  })

  test('counts that still say UP come from before the disable', async () => {
    const member = { ...MEMBER, svrstate: 'GOING OUT OF SERVICE' }
    network.use(
      appliance({
        servicegroup_servicegroupmember_binding: () =>
          HttpResponse.json({ ...OK, servicegroup_servicegroupmember_binding: [member] }),
      }),
    )
    expect(await present()).toMatchObject({
      own: 'drain',
      scopes: [{ state: 'read', inForce: false }],
    })
  })

  test.each(['TROFS', 'TROFS_DOWN', 'OFS', 'DOWN', '5', 8, 'GOING OUT OF SERVICE', undefined])(
    'counts that say %s are of a member that is going out',
    async (state) => {
      const member = { ...MEMBER, svrstate: 'DOWN WHEN GOING OUT OF SERVICE' }
      const servicegroupmember = [{ ...STAT, state }]
      network.use(
        appliance({
          servicegroup_servicegroupmember_binding: () =>
            HttpResponse.json({ ...OK, servicegroup_servicegroupmember_binding: [member] }),
          'stat/servicegroup': () =>
            HttpResponse.json({ ...OK, servicegroup: [{ servicegroupmember }] }),
        }),
      )
      expect(await present()).toMatchObject({
        own: 'drain',
        health: 'down',
        scopes: [{ inForce: true }],
      })
    },
  )

  test.each(['NS_EMPTY_STR', 'Unknown', ''])(
    'the state %j is nothing to build on',
    async (svrstate) => {
      network.use(
        appliance({
          servicegroup_servicegroupmember_binding: () =>
            HttpResponse.json({
              ...OK,
              servicegroup_servicegroupmember_binding: [{ ...MEMBER, svrstate }],
            }),
        }),
      )
      expect(await present()).toMatchObject({
        own: 'unknown',
        serves: false,
        scopes: [{ inForce: false }],
      })
    },
  )

  test.each([
    ['ENABLED', 'cuts'],
    ['DISABLED', 'gentle'],
    [undefined, 'unknown'],
  ])('downStateFlush %s: a disable %s', async (downstateflush, maint) => {
    network.use(
      appliance({
        'config/servicegroup': () =>
          HttpResponse.json({ ...OK, servicegroup: [{ ...GROUP, downstateflush }] }),
      }),
    )
    expect((await present()).maint).toBe(maint)
  })

  test('a role that changes while the counts are read: they are read again, or not believed', async () => {
    let asked = 0
    network.use(
      appliance({
        system: () =>
          HttpResponse.json({ ...OK, system: [{ starttime: `boot ${Math.min(++asked, 3)}` }] }),
      }),
    )
    expect((await present()).scopes[0]?.incarnation).toContain('boot 3')
    network.use(
      appliance({
        system: () => HttpResponse.json({ ...OK, system: [{ starttime: `boot ${++asked}` }] }),
      }),
    )
    await expect(look()).rejects.toMatchObject({ code: 'UNREACHABLE', retryable: true })
  })

  test('a user who may not look at the pair drains, and is told what that is worth', async () => {
    const no = () =>
      HttpResponse.json({ errorcode: 2138, message: 'Not authorized' }, { status: 403 })
    network.use(appliance({ hanode: no, system: no, clusterinstance: no }))
    expect((await present()).unverified).toMatch(/allow 'show ha node'/)
  })

  test('a build without any of it stands alone', async () => {
    const no = () =>
      HttpResponse.json({ errorcode: 1232, message: 'Invalid object name' }, { status: 400 })
    network.use(appliance({ hanode: no, system: no, clusterinstance: no }))
    expect((await present()).unverified).toBeUndefined()
  })

  test('the role is understood in any spelling, from the configuration too', async () => {
    network.use(
      appliance({
        'stat/hanode': () =>
          HttpResponse.json({
            ...OK,
            hanode: [{ hacurstatus: 'yes', hacurmasterstate: 'StaySecondary' }],
          }),
      }),
    )
    await expect(look()).rejects.toThrow(/secondary node of its pair/)
    network.use(
      appliance({
        'stat/hanode': () => HttpResponse.json(OK),
        'config/hanode': () =>
          HttpResponse.json({
            ...OK,
            hanode: { id: '0', ipaddress: '10.0.0.11', state: 'PRIMARY' },
          }),
      }),
    )
    expect((await present()).scopes[0]?.scope).toBe('10.0.0.11')
  })
})

describe('changes', () => {
  const drainWeb1 = [{ kind: 'hold', ref: WEB1, to: 'drain' }] as const

  /** Says UP until a disable came, whatever became of its answer. */
  function draining(answer: () => Response, after = 'GOING OUT OF SERVICE') {
    let svrstate = 'UP'
    return appliance({
      servicegroup_servicegroupmember_binding: () =>
        HttpResponse.json({
          ...OK,
          servicegroup_servicegroupmember_binding: [{ ...MEMBER, svrstate }],
        }),
      'config/servicegroup': ({ line }) => {
        if (!line.startsWith('POST')) return HttpResponse.json({ ...OK, servicegroup: [GROUP] })
        svrstate = after
        return answer()
      },
    })
  }

  const disables = () => seen.filter(({ line }) => line.includes('action=disable'))

  test('an answer of no bytes is a yes', async () => {
    network.use(draining(() => new HttpResponse(null, { status: 200 })))
    await using adc = provider()
    expect(await adc.apply(drainWeb1, ctx)).toMatchObject([{ status: 'applied' }])
  })

  test.each([
    ['a lost connection', () => HttpResponse.error()],
    ['a page of a proxy', () => HttpResponse.html('<p>?</p>')],
    [
      'no word of the packet engine',
      () => HttpResponse.json({ errorcode: 1198, message: 'No response' }, { status: 599 }),
    ],
  ])('%s leads to a look: done', async (_, answer) => {
    network.use(draining(answer))
    await using adc = provider()
    expect(await adc.apply(drainWeb1, ctx)).toMatchObject([{ status: 'applied' }])
    expect(disables()).toHaveLength(1)
  })

  test('where the look shows nothing, nobody knows', async () => {
    network.use(draining(() => HttpResponse.error(), 'UP'))
    await using adc = provider()
    expect(await adc.apply(drainWeb1, ctx)).toMatchObject([
      { status: 'unknown', error: { code: 'CONNECTION_LOST' } },
    ])
    expect(disables()).toHaveLength(1)
  })

  test.each([
    [257, 599, 'REJECTED'],
    [2138, 403, 'FORBIDDEN'],
    [258, 404, 'NOT_FOUND'],
    [368, 599, 'CONFLICT'],
    [1203, 599, 'REJECTED'],
  ])('errorcode %i is refused with %s', async (errorcode, status, code) => {
    network.use(draining(() => HttpResponse.json({ errorcode, message: 'No' }, { status }), 'UP'))
    await using adc = provider()
    expect(await adc.apply(drainWeb1, ctx)).toMatchObject([{ status: 'rejected', error: { code } }])
  })

  test('a warning that this is a secondary is a refusal, another one is not', async () => {
    const warn = (errorcode: number) => () =>
      HttpResponse.json({ errorcode, message: 'w', severity: 'WARNING' }, { status: 209 })
    network.use(draining(warn(1028)))
    await using adc = provider()
    expect(await adc.apply(drainWeb1, ctx)).toMatchObject([
      { status: 'rejected', error: { code: 'CONFLICT' } },
    ])
    network.use(draining(warn(1067)))
    await using other = provider()
    expect(await other.apply(drainWeb1, ctx)).toMatchObject([{ status: 'applied' }])
  })

  test('a change that the other node did not hear of is done, and told', async () => {
    const message = 'Command propagation failed'
    network.use(draining(() => HttpResponse.json({ errorcode: 347, message }, { status: 599 })))
    await using adc = provider()
    expect(await adc.apply(drainWeb1, ctx)).toMatchObject([{ status: 'applied' }])
    const { readings } = await adc.observe([WEB1], ctx)
    expect(JSON.stringify(readings)).toContain('did not hear of a change')
  })

  test('a disable without grace that only drains is neither done nor refused', async () => {
    network.use(draining(() => HttpResponse.json(OK), 'GOING OUT OF SERVICE'))
    await using adc = provider()
    const [result] = await adc.apply([{ kind: 'hold', ref: WEB1, to: 'maint' }], ctx)
    expect(result).toMatchObject({ status: 'unknown', error: { code: 'CONFLICT' } })
    expect(result).toHaveProperty('error.message', expect.stringContaining('GOING OUT OF SERVICE'))
    expect(disables()).toHaveLength(1)
  })

  test('a busy appliance is asked four times in all', async () => {
    network.use(
      draining(
        () => HttpResponse.json({ errorcode: 272, message: 'Device busy' }, { status: 599 }),
        'UP',
      ),
    )
    await using adc = provider()
    expect(await adc.apply(drainWeb1, ctx)).toMatchObject([
      { status: 'rejected', error: { retryable: true } },
    ])
    expect(disables()).toHaveLength(4)
  })

  test('a service group member is never disabled without server and port, on no way', async () => {
    network.use(draining(() => HttpResponse.json(OK)))
    await using adc = provider()
    const identity = '|'
    await adc.apply(
      [
        { kind: 'hold', ref: { pool: 'sg', member: '' }, to: 'drain' },
        { kind: 'hold', ref: { pool: 'sg', member: ':80' }, to: 'drain' },
        { kind: 'hold', ref: { pool: 'sg', member: 'sg' }, to: 'maint' },
        { kind: 'hold', ref: WEB1, to: 'drain', identity },
        { kind: 'hold', ref: WEB1, to: 'drain' },
      ],
      ctx,
    )
    expect(disables().map(({ body }) => JSON.parse(body) as unknown)).toEqual([
      {
        servicegroup: {
          servicegroupname: 'sg',
          servername: 'web1',
          port: 80,
          delay: 0,
          graceful: 'YES',
        },
      },
    ])
  })
})

describe('options', () => {
  test.each([
    [{ url: 'adc.example' }, /url: expected an http or https URL/],
    [{ url: 'http://adc.example' }, /credentials would cross the network in the clear/],
    [{ url: 'https://u:p@adc.example' }, /credentials do not belong into the URL/],
    [{ url: [] }, /expected at least one URL/],
    [{ partition: 'p1', auth: 'headers' }, /partition: .*expected auth: 'session'/],
    [{ sessionTimeout: '1m' }, /sessionTimeout/],
    [{ pasword: 'x' }, /unknown option 'pasword'/],
    [{ tls: { cert: 'x' } }, /cert and key go together/],
    [{ dispatcher: {} }, /expected a dispatcher/],
  ])('%j is refused', (options, message) => {
    expect(() => provider(options as never)).toThrow(message)
  })

  test('the instance names addresses and partition, and no user', () => {
    const { instance } = provider({ url: ['https://a', 'https://b/adm'], partition: 'p1' })
    expect(instance).toBe('https://a,https://b/adm#p1')
  })
})
