import { drain, type DrainEvent, isDrainableError, ready, startDrain } from 'drainable'
import { citrixAdc, type CitrixAdcOptions } from 'drainable/citrix-adc'
import { type CitrixFake, type FakeOptions, startFake } from 'drainable/testing/citrix-adc'
import { describe, expect, test } from 'vitest'
import { eventually } from '../../support/eventually.js'
import { systemClock } from '../../../src/provider/clock.js'

const WEB1 = { pool: 'web', member: '10.0.0.1:80' }
const WEB2 = { pool: 'web', member: '10.0.0.2:80' }
const SVC1 = { pool: 'vs', member: 'svc1' }

interface Setup extends AsyncDisposable {
  readonly fake: CitrixFake
  readonly adc: ReturnType<typeof citrixAdc>
}

async function setup(
  fakeOptions: FakeOptions = {},
  options: Partial<CitrixAdcOptions> = {},
): Promise<Setup> {
  const fake = await startFake({
    tick: 20,
    pools: { web: ['10.0.0.1:80', '10.0.0.2:80'] },
    vservers: { vs: [{ name: 'svc1', address: '10.0.0.1' }, 'svc2'] },
    ...fakeOptions,
  })
  const tls = fake.ca === '' ? {} : { tls: { ca: fake.ca } }
  const url = fake.urls
  const adc = citrixAdc({
    url,
    username: 'admin',
    password: 'secret',
    freshness: '200ms',
    ...tls,
    ...options,
  })
  return {
    fake,
    adc,
    async [Symbol.asyncDispose]() {
      await adc.close()
      await fake.close()
    },
  }
}

/** What was sent to change something. */
function actions(fake: CitrixFake): readonly { line: string; body: unknown }[] {
  return fake.requests
    .filter(({ line }) => /action=(disable|enable|save)/.test(line))
    .map(({ line, body }) => ({ line: line.replace(/^POST \/nitro\/v1\/config\//, ''), body }))
}

const DISABLE = {
  line: 'servicegroup?action=disable&warning=yes',
  body: {
    servicegroup: {
      servicegroupname: 'web',
      servername: '10.0.0.1',
      port: 80,
      delay: 0,
      graceful: 'YES',
    },
  },
}

describe('a drain', { concurrent: true }, () => {
  test('waits for what is in flight, and believes OUT OF SERVICE', async () => {
    await using at = await setup()
    const { fake, adc } = at
    const end = await fake.occupy(WEB1)
    await fake.occupy(WEB1, { pooled: 4 })
    const run = startDrain(adc, WEB1, { timeout: '20s' })
    await eventually(() => {
      expect(fake.look(WEB1).svrstate).toBe('GOING OUT OF SERVICE')
      expect(run.why().map(({ code }) => code)).toContain('in-flight')
    })
    await end()
    const { outcome, members } = await run.done
    expect(outcome).toBe('idle')
    expect(members[0]).toMatchObject({ verifiedIdle: true, sealed: true, wasAdmin: 'ready' })
    expect(members[0]!.lastReading).toMatchObject({ own: 'drain', scopes: [{ released: true }] })
    expect(actions(fake)).toEqual([DISABLE])
    expect(fake.look(WEB1).cut).toBe(0)
    await run.close()
  })

  test('of a service uses its transactions, and its own keys', async () => {
    await using at = await setup()
    const { fake, adc } = at
    const end = await fake.occupy(SVC1, { active: 1, queued: 1, pooled: 3 })
    const run = startDrain(adc, SVC1, { timeout: '20s' })
    await eventually(() => {
      expect(run.report().members[0]?.lastReading).toMatchObject({
        own: 'drain',
        scopes: [{ active: 1, queued: 1, pooled: 3 }],
      })
    })
    await end()
    expect((await run.done).outcome).toBe('idle')
    expect(actions(fake)).toEqual([
      {
        line: 'service?action=disable&warning=yes',
        body: { service: { name: 'svc1', delay: 0, graceful: 'YES' } },
      },
    ])
    await run.close()
  })

  test('by address reaches members and services of a server alone', async () => {
    await using at = await setup()
    const { fake, adc } = at
    const report = await drain(adc, { address: '10.0.0.1' }, { timeout: '20s' })
    expect(report.members.map(({ ref }) => ref.member).sort()).toEqual(['10.0.0.1:80', 'svc1'])
    expect(fake.look(WEB2).enabled).toBe(true)
    expect(fake.requests.filter(({ line }) => line.includes('/server?action'))).toEqual([])
  })

  test('of a service in the pools of two virtual servers is one drain', async () => {
    const svc = { name: 'svc1', address: '10.0.0.7' }
    await using at = await setup({
      vservers: { vs: [svc, 'svc2'], 'vs too': [svc, 'svc2'] },
      pools: {},
    })
    const { fake, adc } = at
    const run = startDrain(adc, { address: '10.0.0.7' }, { timeout: '20s' })
    const { outcome, members } = await run.done
    expect([outcome, members.length]).toEqual(['idle', 2])
    expect(actions(fake)).toHaveLength(1)
    await run.restore()
    expect(actions(fake)).toHaveLength(2)
    expect(fake.look(SVC1).svrstate).toBe('UP')
  })

  test('reaches members by DNS name, on every port, by IPv6 and with blanks', async () => {
    const pool = 'sg web: A#1'
    await using at = await setup({
      pools: {
        [pool]: [
          { name: 'app.example.net', address: '0.0.0.0', port: 65_535 },
          '[2001:db8::1]:80',
          'web 3:80',
          'web4:80',
        ],
      },
      vservers: {},
    })
    const { fake, adc } = at
    const members = ['app.example.net:*', '[2001:DB8::1]:80', 'web 3:80']
    const ends = await Promise.all(
      ['app.example.net:*', '[2001:db8::1]:80', 'web 3:80'].map((member) =>
        fake.occupy({ pool, member }),
      ),
    )
    const run = startDrain(
      adc,
      members.map((member) => ({ pool, member })),
      { timeout: '20s' },
    )
    await eventually(() => {
      expect(run.report().members.map(({ lastReading }) => lastReading?.scopes[0]?.active)).toEqual(
        [1, 1, 1],
      )
    })
    await eventually(() => {
      expect(actions(fake)).toHaveLength(1)
    })
    for (const end of ends) await end()
    expect((await run.done).outcome).toBe('idle')
    const sent = actions(fake).flatMap(
      ({ body }) => (body as { servicegroup: { servername: string; port: number }[] }).servicegroup,
    )
    expect(sent.map(({ servername, port }) => [servername, port])).toEqual([
      ['app.example.net', 65_535],
      ['2001:db8::1', 80],
      ['web 3', 80],
    ])
    await run.close()
  })

  test('is undone at its own level', async () => {
    await using at = await setup()
    const { fake, adc } = at
    const run = startDrain(adc, WEB1, { timeout: '20s' })
    await run.done
    await run.restore()
    expect(fake.look(WEB1)).toMatchObject({ svrstate: 'UP', enabled: true })
    expect(actions(fake).at(-1)).toEqual({
      line: 'servicegroup?action=enable&warning=yes',
      body: { servicegroup: { servicegroupname: 'web', servername: '10.0.0.1', port: 80 } },
    })
  })

  test('does not believe numbers that are repeated from before it', async () => {
    await using at = await setup({ statInterval: 700 }, { freshness: '800ms' })
    const { fake, adc } = at
    await fake.occupy(WEB1, { persistent: 1 })
    await adc.observe([WEB1], {
      signal: new AbortController().signal,
      clock: systemClock,
    })
    const end = await fake.occupy(WEB1) // the appliance goes on saying 0 for a while
    const run = startDrain(adc, WEB1, { timeout: '20s' })
    const idle: number[] = []
    run.on('idle', () => idle.push(fake.look(WEB1).active))
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    expect(idle).toEqual([])
    await end()
    await run.done
    expect(idle).toEqual([0])
    await run.close()
  })

  test('sends no seal in TROFS, although a disable would be gentle there', async () => {
    await using at = await setup({
      pools: { web: { members: ['10.0.0.1:80', '10.0.0.2:80'], downstateflush: 'DISABLED' } },
    })
    const { fake, adc } = at
    await fake.occupy(WEB1, { persistent: 1 })
    const faults: DrainEvent[] = []
    const run = startDrain(adc, WEB1, { timeout: '20s', onEvent: (e) => void faults.push(e) })
    const { members } = await run.done
    expect(members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true, sealed: false })
    expect(actions(fake)).toEqual([DISABLE])
    expect(faults.filter(({ type }) => type === 'fault')).toMatchObject([
      { error: { code: 'UNSUPPORTED' } },
    ])
    await run.close()
  })

  test('that persistence keeps busy says so, and is ended by escalateAfter', async () => {
    await using at = await setup()
    const { fake, adc } = at
    // One answer that does not end, of a client that keeps coming.
    await fake.occupy(SVC1)
    await fake.occupy(SVC1, { persistent: 1 })
    const client = setInterval(() => fake.arrive(SVC1, { persistent: true }), 20)
    try {
      const run = startDrain(adc, SVC1, { timeout: '30s' })
      await eventually(() => {
        expect(JSON.stringify(run.why())).toMatch(/persistence/)
      })
      const how = { timeout: '30s', escalateAfter: '1ms', onTimeout: 'terminate' } as const
      const { outcome, members } = await drain(adc, SVC1, how)
      expect(outcome).toBe('terminated')
      expect(members[0]!.terminated).toBeGreaterThan(0)
      expect(actions(fake)).toHaveLength(2)
      expect(actions(fake)[1]!.body).toEqual({
        service: { name: 'svc1', delay: 0, graceful: 'NO' },
      })
      await run.close()
    } finally {
      clearInterval(client)
    }
  })

  test('cuts at its deadline only where the caller said so', async () => {
    await using at = await setup()
    const { fake, adc } = at
    await fake.occupy(WEB1)
    await expect(drain(adc, WEB1, { timeout: '3s' })).rejects.toMatchObject({
      code: 'DRAIN_TIMEOUT',
    })
    expect(fake.look(WEB1)).toMatchObject({ active: 1, cut: 0 })
    await fake.occupy(WEB2)
    const report = await drain(adc, WEB2, {
      timeout: '1500ms',
      onTimeout: 'terminate',
      keepReady: 0,
    })
    expect(report).toMatchObject({ outcome: 'terminated', members: [{ terminated: 1 }] })
    expect(fake.look(WEB2)).toMatchObject({ active: 0, cut: 1 })
  })
})

describe('a second disable in TROFS', { concurrent: true }, () => {
  test.each(['refuse', 'ignore'] as const)(
    'that does nothing (%s) is not said to have cut anything',
    async (secondDisable) => {
      await using at = await setup({ secondDisable })
      const { fake, adc } = at
      await fake.occupy(WEB1)
      const ctx = {
        signal: new AbortController().signal,
        clock: {
          now: () => performance.now(),
          setTimeout: (fn: () => void, ms: number) => {
            const timer = setTimeout(fn, ms)
            return () => clearTimeout(timer)
          },
        },
      }
      await adc.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx)
      const [result] = await adc.apply([{ kind: 'terminate', ref: WEB1 }], ctx)
      expect(result).toMatchObject({ status: 'rejected', error: { code: 'REJECTED' } })
      expect(fake.look(WEB1)).toMatchObject({ svrstate: 'GOING OUT OF SERVICE', active: 1 })
      const { readings } = await adc.observe([WEB1], ctx)
      expect(readings[0]).toMatchObject({ own: 'drain', scopes: [{ active: 1 }] })
    },
  )
})

describe('what others do', { concurrent: true }, () => {
  test('an enable behind our back overrules the drain', async () => {
    await using at = await setup()
    const { fake, adc } = at
    await fake.occupy(WEB1)
    const run = startDrain(adc, WEB1, { timeout: '20s' })
    await eventually(() => {
      expect(run.report().members[0]?.phase).toBe('draining')
    })
    await eventually(() => {
      expect(fake.look(WEB1).enabled).toBe(false)
    })
    await new Promise((resolve) => setTimeout(resolve, 1_200))
    await fake.setBehind(WEB1, 'ready')
    expect((await run.done).outcome).toBe('overruled')
    await run.close()
  })

  test('a plain disable of an operator is not undone by our restore', async () => {
    await using at = await setup()
    const { fake, adc } = at
    const run = startDrain(adc, WEB1, { timeout: '20s' })
    await run.done
    await fake.setBehind(WEB1, 'maint')
    const report = await run.restore()
    expect(report.members[0]!.error).toMatchObject({ code: 'CONFLICT' })
    expect(fake.look(WEB1).enabled).toBe(false)
    await ready(adc, WEB1)
    expect(fake.look(WEB1).svrstate).toBe('UP')
  })

  test('ready() waits until a check passed after the enable', async () => {
    await using at = await setup({ checkDelay: 900 })
    const { fake, adc } = at
    await fake.setBehind(WEB1, 'maint')
    const { members } = await ready(adc, WEB1, { waitHealthy: '10s' })
    expect(members[0]).toMatchObject({ wasAdmin: 'maint', health: 'up' })
    expect(fake.look(WEB1).svrstate).toBe('UP')
  })

  test('a disabled server is inherited; TROFS of a monitor too', async () => {
    await using at = await setup()
    const { fake, adc } = at
    const ctx = {
      signal: new AbortController().signal,
      clock: systemClock,
    }
    fake.setServer('10.0.0.1', 'maint')
    const [reading] = (await adc.observe([WEB1], ctx)).readings
    expect(reading).toMatchObject({ own: 'ready', inherited: 'maint', serves: false })
    fake.setHealth(WEB2, 'TROFS')
    const [other] = (await adc.observe([WEB2], ctx)).readings
    expect(other).toMatchObject({ own: 'ready', inherited: 'drain', serves: false })
    expect(JSON.stringify(other)).toContain('Monitor set TROFS')
  })
})

describe('a pair', { concurrent: true }, () => {
  test('a failover restarts the proof on the other node', async () => {
    await using at = await setup({ ha: true })
    const { fake, adc } = at
    await fake.occupy(WEB1)
    const run = startDrain(adc, WEB1, { timeout: '20s' })
    await eventually(() => {
      expect(run.report().members[0]?.lastReading).toMatchObject({ own: 'drain' })
    })
    await fake.failover()
    const { outcome, members } = await run.done
    expect(outcome).toBe('idle')
    // The request on the old node was cut by the failover, and that is said.
    expect(members[0]).toMatchObject({
      verifiedIdle: false,
      lost: [{ scope: '192.0.2.240', active: 1 }],
    })
    expect(
      fake.requests.filter(({ line, node }) => line.includes('action=') && node === '192.0.2.241'),
    ).toEqual([])
    await run.close()
  })

  test('writes nothing to a secondary, and reads nothing from it', async () => {
    await using fake = await startFake({
      ha: true,
      tls: false,
      pools: { web: ['10.0.0.1:80', '10.0.0.2:80'] },
    })
    await using adc = citrixAdc({ url: fake.urls[1]!, username: 'admin', password: 'secret' })
    const failure: unknown = await drain(adc, WEB1, { timeout: '12s' }).catch(
      (error: unknown) => error,
    )
    expect(isDrainableError(failure, 'UNREACHABLE')).toBe(true)
    expect(String(failure)).toMatch(/secondary node of its pair/)
    expect(actions(fake)).toEqual([])
  })

  test('finds the primary among its addresses', async () => {
    await using at = await setup({ ha: true })
    const { fake, adc } = at
    await fake.failover()
    expect((await drain(adc, WEB1, { timeout: '20s' })).outcome).toBe('idle')
    expect(
      new Set(
        fake.requests.filter(({ line }) => line.includes('action=disable')).map(({ node }) => node),
      ),
    ).toEqual(new Set(['192.0.2.241']))
  })

  test('a failover behind one address (SNIP) restarts the proof', async () => {
    await using at = await setup()
    const { fake, adc } = at
    await fake.occupy(WEB1, { persistent: 1 })
    const incarnations = new Set<string>()
    const run = startDrain(adc, WEB1, { timeout: '20s' })
    run.on('load', () => {
      const reading = run.report().members[0]?.lastReading
      for (const scope of reading?.scopes ?? []) {
        if (scope.state === 'read') incarnations.add(`${scope.scope} ${scope.incarnation}`)
      }
    })
    await eventually(() => {
      expect(incarnations.size).toBe(1)
    })
    await fake.failover()
    const { members } = await run.done
    expect(members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    expect(members[0]!.lastReading!.scopes).toMatchObject([{ scope: '192.0.2.241', state: 'read' }])
    expect(fake.requests.filter(({ line }) => line.includes('/login'))).toHaveLength(2)
    await run.close()
  })

  test('a reboot that forgot the drain is noticed, and the drain put back', async () => {
    await using at = await setup()
    const { fake, adc } = at
    await fake.occupy(WEB1)
    const run = startDrain(adc, WEB1, { timeout: '30s' })
    await eventually(() => {
      expect(run.report().members[0]?.lastReading).toMatchObject({ own: 'drain' })
    })
    await fake.restart()
    expect((await run.done).outcome).toBe('idle')
    expect(actions(fake)).toEqual([DISABLE, DISABLE])
    expect(fake.look(WEB1).enabled).toBe(false)
    await run.close()
  })
})

describe('sessions', { concurrent: true }, () => {
  test('one session, two calls at once, and none left behind', async () => {
    await using at = await setup()
    const { fake, adc } = at
    await drain(adc, [WEB1, SVC1], { timeout: '20s' })
    expect(fake.requests.filter(({ line }) => line.includes('/login'))).toHaveLength(1)
    expect(fake.sessions).toBe(1)
    expect(fake.peak).toBeLessThanOrEqual(2)
    await adc.close()
    expect(fake.sessions).toBe(0)
  })

  test.each([
    [401, 444],
    [200, 1027],
    [599, 472],
  ])('logs in again where an ended session is told by %i and %i', async (status, errorcode) => {
    await using at = await setup({ expiry: { status, errorcode } })
    const { fake, adc } = at
    await fake.occupy(WEB1, { persistent: 1 })
    const run = startDrain(adc, WEB1, { timeout: '20s' })
    await eventually(() => {
      expect(run.report().members[0]?.lastReading).toMatchObject({ own: 'drain' })
    })
    fake.expireSessions()
    expect((await run.done).outcome).toBe('idle')
    expect(fake.requests.filter(({ line }) => line.includes('/login'))).toHaveLength(2)
    expect(actions(fake)).toEqual([DISABLE])
    await run.close()
  })

  test('a wrong password is said once, and never shown', async () => {
    await using at = await setup({}, { password: 'hunter2-hunter2' })
    const { fake, adc } = at
    const failure: unknown = await drain(adc, WEB1).catch((error: unknown) => error)
    expect(isDrainableError(failure, 'UNAUTHENTICATED')).toBe(true)
    expect(String(failure)).not.toContain('hunter2')
    expect(fake.requests.filter(({ line }) => line.includes('/login'))).toHaveLength(1)
  })

  test('works in a partition', async () => {
    await using at = await setup(
      { partitions: { p1: { pools: { inner: ['10.9.0.1:80', '10.9.0.2:80'] } } } },
      { partition: 'p1' },
    )
    const { fake, adc } = at
    const inner = { pool: 'inner', member: '10.9.0.1:80' }
    expect((await drain(adc, inner, { timeout: '20s' })).outcome).toBe('idle')
    expect(fake.look(inner).enabled).toBe(false)
    await expect(drain(adc, WEB1)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})

describe('trouble on the way', { concurrent: true }, () => {
  test('a lost answer leads to a look, not to a second disable', async () => {
    await using at = await setup()
    const { fake, adc } = at
    fake.fail({ match: /action=disable/, how: 'reset', execute: true, times: 1 })
    expect((await drain(adc, WEB1, { timeout: '20s' })).outcome).toBe('idle')
    expect(actions(fake)).toEqual([DISABLE])
  })

  test('a busy appliance is asked again', async () => {
    await using at = await setup()
    const { fake, adc } = at
    fake.fail({ match: /stat\/servicegroup/, how: 'status', status: 599, errorcode: 446, times: 2 })
    fake.fail({ match: /action=disable/, how: 'status', status: 599, errorcode: 272, times: 1 })
    expect((await drain(adc, WEB1, { timeout: '20s' })).outcome).toBe('idle')
    expect(fake.look(WEB1).enabled).toBe(false)
  })

  test.each([
    ['garbage', { how: 'garbage' }],
    ['no bytes', { how: 'status', status: 200, body: '' }],
    ['a reset', { how: 'reset' }],
  ] as const)('counts that cannot be read (%s) are no zeros', async (_words, failure) => {
    await using at = await setup()
    const { fake, adc } = at
    const end = await fake.occupy(WEB1)
    const run = startDrain(adc, WEB1, { timeout: '20s' })
    const idle: number[] = []
    run.on('idle', () => idle.push(fake.look(WEB1).active))
    await eventually(() => {
      expect(run.report().members[0]?.lastReading).toMatchObject({ own: 'drain' })
    })
    const lift = fake.fail({ match: /\/stat\/servicegroup/, ...failure })
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    expect(idle).toEqual([])
    await lift()
    await end()
    expect((await run.done).outcome).toBe('idle')
    expect(idle).toEqual([0])
    await run.close()
  })

  test('rights that lack are told before anything else is tried', async () => {
    await using at = await setup(
      { users: { eve: { password: 'pw', rights: 'read-only' } } },
      { username: 'eve', password: 'pw' },
    )
    const { fake, adc } = at
    const failure: unknown = await drain(adc, WEB1, { timeout: '12s' }).catch(
      (error: unknown) => error,
    )
    expect(isDrainableError(failure, 'FORBIDDEN')).toBe(true)
    expect(fake.look(WEB1).enabled).toBe(true)
  })

  test('a desired-state group is refused, in words', async () => {
    await using at = await setup({
      pools: { web: { members: ['10.0.0.1:80', '10.0.0.2:80'], autoscale: 'API' } },
    })
    const { fake, adc } = at
    await expect(drain(adc, WEB1, { timeout: '12s' })).rejects.toMatchObject({
      code: 'UNSUPPORTED',
    })
    expect(actions(fake)).toEqual([])
  })

  test('an NSIP of a cluster refuses changes, its address drains', async () => {
    await using nsip = await setup({ cluster: 'nsip' })
    const failure: unknown = await drain(nsip.adc, WEB1, { timeout: '8s' }).catch(
      (error: unknown) => error,
    )
    expect(String(failure)).toMatch(/1203|Cluster IP/)
    await using clip = await setup({ cluster: 'clip' })
    const report = await drain(clip.adc, WEB1, { timeout: '20s' })
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
  })

  test('saves only where that is asked for', async () => {
    await using at = await setup({}, { save: true })
    const { fake, adc } = at
    await drain(adc, WEB1, { timeout: '20s' })
    expect(actions(fake).map(({ line }) => line)).toEqual([DISABLE.line, 'nsconfig?action=save'])
    await fake.restart()
    expect(fake.look(WEB1).enabled).toBe(false)
  })
})

describe('TLS', { concurrent: true }, () => {
  test('a pinned certificate is enough, an unknown one is not', async () => {
    await using fake = await startFake({ pools: { web: ['10.0.0.1:80', '10.0.0.2:80'] } })
    const login = { url: fake.url, username: 'admin', password: 'secret' }
    await using pinned = citrixAdc({ ...login, tls: { fingerprint256: fake.fingerprint256 } })
    const ctx = {
      signal: new AbortController().signal,
      clock: systemClock,
    }
    expect((await pinned.describe(ctx)).version).toBe('13.1-49.13')
    await using unknown = citrixAdc(login)
    await expect(unknown.describe(ctx)).rejects.toMatchObject({ code: 'UNREACHABLE' })
    await using wrong = citrixAdc({ ...login, tls: { fingerprint256: '00'.repeat(32) } })
    await expect(wrong.describe(ctx)).rejects.toThrow(/names another/)
    expect(fake.requests.filter(({ line }) => line.includes('login'))).toHaveLength(1)
  })
})

describe('at an appliance’s own pace', { concurrent: true }, () => {
  test('statistics of seven seconds: idle is right, and within the rule', async () => {
    await using at = await setup({ tick: 1_000, statInterval: 7_000 }, { freshness: '8s' })
    const { fake, adc } = at
    const end = await fake.occupy(WEB1)
    // Without the appliance's own word: a client with a persistence entry keeps it in TROFS.
    await fake.occupy(WEB2, { persistent: 1 })
    const finish = await fake.occupy(WEB2)
    const run = startDrain(adc, [WEB1, WEB2], { timeout: '50s', keepReady: 0 })
    const idle: [string, number, boolean][] = []
    run.on('idle', ({ ref }) => {
      const released = run
        .report()
        .members.some(
          ({ ref: one, lastReading }) =>
            one.member === ref.member && lastReading?.scopes[0]?.released === true,
        )
      idle.push([ref.member, fake.look(ref).active, released])
    })
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    await end()
    await finish()
    const { outcome } = await run.done
    expect(outcome).toBe('idle')
    expect(idle.sort()).toEqual([
      ['10.0.0.1:80', 0, true],
      ['10.0.0.2:80', 0, false],
    ])
    await run.close()
  }, 60_000)
})

test('a thousand members are read by as many requests as one', async () => {
  const members = Array.from({ length: 1_000 }, (_, i) => `10.1.${i >> 8}.${i & 255}:80`)
  // Every look is a whole one.
  await using at = await setup({ tls: false, pools: { web: members } }, { freshness: 0 })
  const { fake, adc } = at
  const ctx = {
    signal: new AbortController().signal,
    clock: systemClock,
  }
  const refs = members.map((member) => ({ pool: 'web', member }))
  await adc.observe(refs.slice(0, 1), ctx)
  const cost = async (some: typeof refs): Promise<number> => {
    const before = fake.requests.length
    await adc.observe(some, ctx)
    return fake.requests.length - before
  }
  const one = await cost(refs.slice(0, 1))
  expect(await cost(refs)).toBe(one)
})
