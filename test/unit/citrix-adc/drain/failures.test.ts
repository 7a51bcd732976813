import { drain, isDrainableError, startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { eventually } from '../../../support/eventually.js'
import { WEB1, setup, actions, DISABLE } from './set-up.js'

describe('failures on the way', { concurrent: true }, () => {
  test('a lost answer leads to a look, not to a second disable', async () => {
    await using at = await setup()
    const { fake, adc } = at
    fake.fail({ match: /action=disable/, how: 'reset', execute: true, times: 1 })
    expect((await drain(adc, WEB1, { timeout: '50s' })).outcome).toBe('idle')
    expect(actions(fake)).toEqual([DISABLE])
  })

  test('a busy appliance is asked again', async () => {
    await using at = await setup()
    const { fake, adc } = at
    fake.fail({ match: /stat\/servicegroup/, how: 'status', status: 599, errorcode: 446, times: 2 })
    fake.fail({ match: /action=disable/, how: 'status', status: 599, errorcode: 272, times: 1 })
    expect((await drain(adc, WEB1, { timeout: '50s' })).outcome).toBe('idle')
    expect(fake.look(WEB1).enabled).toBe(false)
  })

  test.each([
    ['garbage', { how: 'garbage' }],
    ['no bytes', { how: 'status', status: 200, body: '' }],
    ['a reset', { how: 'reset' }],
  ] as const)('counts that can not be read (%s) are not zeros', async (_words, failure) => {
    await using at = await setup()
    const { fake, adc } = at
    const end = await fake.occupy(WEB1)
    const run = startDrain(adc, WEB1, { timeout: '50s' })
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

  test('missing rights are told before anything else is tried', async () => {
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

  test('a desired-state group is refused with the reason', async () => {
    await using at = await setup({
      pools: { web: { members: ['10.0.0.1:80', '10.0.0.2:80'], autoscale: 'API' } },
    })
    const { fake, adc } = at
    await expect(drain(adc, WEB1, { timeout: '12s' })).rejects.toMatchObject({
      code: 'UNSUPPORTED',
    })
    expect(actions(fake)).toEqual([])
  })

  test('the NSIP of a cluster refuses changes, its cluster address drains', async () => {
    await using nsip = await setup({ cluster: 'nsip' })
    const failure: unknown = await drain(nsip.adc, WEB1, { timeout: '8s' }).catch(
      (error: unknown) => error,
    )
    expect(String(failure)).toMatch(/1203|Cluster IP/)
    await using clip = await setup({ cluster: 'clip' })
    const report = await drain(clip.adc, WEB1, { timeout: '50s' })
    expect(report.members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
  })

  test('the configuration is saved only on request', async () => {
    await using at = await setup({}, { save: true })
    const { fake, adc } = at
    await drain(adc, WEB1, { timeout: '50s' })
    expect(actions(fake).map(({ line }) => line)).toEqual([DISABLE.line, 'nsconfig?action=save'])
    await fake.restart()
    expect(fake.look(WEB1).enabled).toBe(false)
  })
})
