import { drain, isDrainableError, ready, startDrain } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import { startFake } from 'drainable/testing/citrix-adc'
import { describe, expect, test } from 'vitest'
import { eventually } from '../../../support/eventually.js'
import { systemClock } from '../../../../src/provider/clock.js'
import { WEB1, WEB2, setup, actions, DISABLE } from './set-up.js'

describe('changes by another client', { concurrent: true }, () => {
  test('an enable overrules the drain', async () => {
    await using at = await setup()
    const { fake, adc } = at
    await fake.occupy(WEB1)
    const run = startDrain(adc, WEB1, { timeout: '50s' })
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

  test('a plain disable is not undone by our restore', async () => {
    await using at = await setup()
    const { fake, adc } = at
    const run = startDrain(adc, WEB1, { timeout: '50s' })
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

  test('a disabled server is inherited, as is TROFS of a monitor', async () => {
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
    const run = startDrain(adc, WEB1, { timeout: '50s' })
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
    expect((await drain(adc, WEB1, { timeout: '50s' })).outcome).toBe('idle')
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
    const run = startDrain(adc, WEB1, { timeout: '50s' })
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
