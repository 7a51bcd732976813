import { drain, type DrainEvent, startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { eventually } from '../../../support/eventually.js'
import { systemClock } from '../../../../src/provider/clock.js'
import { WEB1, WEB2, SVC1, setup, actions, DISABLE } from './set-up.js'

describe('a drain', { concurrent: true }, () => {
  test('waits for requests in flight, and believes OUT OF SERVICE', async () => {
    await using at = await setup()
    const { fake, adc } = at
    const end = await fake.occupy(WEB1)
    await fake.occupy(WEB1, { pooled: 4 })
    const run = startDrain(adc, WEB1, { timeout: '50s' })
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

  test('of a service uses its transactions and the keys of a service', async () => {
    await using at = await setup()
    const { fake, adc } = at
    const end = await fake.occupy(SVC1, { active: 1, queued: 1, pooled: 3 })
    const run = startDrain(adc, SVC1, { timeout: '50s' })
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

  test('by address reaches the members and services of one server only', async () => {
    await using at = await setup()
    const { fake, adc } = at
    const report = await drain(adc, { address: '10.0.0.1' }, { timeout: '50s' })
    expect(report.members.map(({ ref }) => ref.member).sort()).toEqual(['10.0.0.1:80', 'svc1'])
    expect(fake.look(WEB2).enabled).toBe(true)
    expect(fake.requests.filter(({ line }) => line.includes('/server?action'))).toEqual([])
  })

  test('of a service on two virtual servers is one drain', async () => {
    const svc = { name: 'svc1', address: '10.0.0.7' }
    await using at = await setup({
      vservers: { vs: [svc, 'svc2'], 'vs too': [svc, 'svc2'] },
      pools: {},
    })
    const { fake, adc } = at
    const run = startDrain(adc, { address: '10.0.0.7' }, { timeout: '50s' })
    const { outcome, members } = await run.done
    expect([outcome, members.length]).toEqual(['idle', 2])
    expect(actions(fake)).toHaveLength(1)
    await run.restore()
    expect(actions(fake)).toHaveLength(2)
    expect(fake.look(SVC1).svrstate).toBe('UP')
  })

  test('reaches members by DNS name, on every port, by IPv6 and with spaces', async () => {
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
      { timeout: '50s' },
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

  test('is undone to ready in the state it left', async () => {
    await using at = await setup()
    const { fake, adc } = at
    const run = startDrain(adc, WEB1, { timeout: '50s' })
    await run.done
    await run.restore()
    expect(fake.look(WEB1)).toMatchObject({ svrstate: 'UP', enabled: true })
    expect(actions(fake).at(-1)).toEqual({
      line: 'servicegroup?action=enable&warning=yes',
      body: { servicegroup: { servicegroupname: 'web', servername: '10.0.0.1', port: 80 } },
    })
  })

  test('does not believe repeated numbers from before it', async () => {
    await using at = await setup({ statInterval: 700 }, { freshness: '800ms' })
    const { fake, adc } = at
    await fake.occupy(WEB1, { persistent: 1 })
    await adc.observe([WEB1], {
      signal: new AbortController().signal,
      clock: systemClock,
    })
    const end = await fake.occupy(WEB1) // the appliance goes on saying 0 for a while
    const run = startDrain(adc, WEB1, { timeout: '50s' })
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
    const run = startDrain(adc, WEB1, { timeout: '50s', onEvent: (e) => void faults.push(e) })
    const { members } = await run.done
    expect(members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true, sealed: false })
    expect(actions(fake)).toEqual([DISABLE])
    expect(faults.filter(({ type }) => type === 'fault')).toMatchObject([
      { error: { code: 'UNSUPPORTED' } },
    ])
    await run.close()
  })

  test(
    'kept busy by persistence says so, and escalateAfter ends it',
    { timeout: 240_000 },
    async () => {
      await using at = await setup()
      const { fake, adc } = at
      // One endless answer to a client that keeps coming.
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
    },
  )

  test('cuts nothing at its deadline', async () => {
    await using at = await setup()
    const { fake, adc } = at
    await fake.occupy(WEB1)
    await expect(drain(adc, WEB1, { timeout: '8s' })).rejects.toMatchObject({
      code: 'DRAIN_TIMEOUT',
    })
    expect(fake.look(WEB1)).toMatchObject({ active: 1, cut: 0 })
  })

  test('cuts at its deadline if the caller said so', async () => {
    await using at = await setup()
    const { fake, adc } = at
    await fake.occupy(WEB2)
    const report = await drain(adc, WEB2, {
      timeout: '5s',
      onTimeout: 'terminate',
      keepReady: 0,
    })
    expect(report).toMatchObject({ outcome: 'terminated', members: [{ terminated: 1 }] })
    expect(fake.look(WEB2)).toMatchObject({ active: 0, cut: 1 })
  })
})

describe('a second disable in TROFS', { concurrent: true }, () => {
  test.each(['refuse', 'ignore'] as const)(
    'that does nothing (%s) does not count as a cut',
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
