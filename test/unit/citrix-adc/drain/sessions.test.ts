import { drain, isDrainableError, startDrain } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import { startFake } from 'drainable/testing/citrix-adc'
import { describe, expect, test } from 'vitest'
import { eventually } from '../../../support/eventually.js'
import { systemClock } from '../../../../src/provider/clock.js'
import { WEB1, SVC1, setup, actions, DISABLE } from './set-up.js'

describe('a session', { concurrent: true }, () => {
  test('is shared by two calls at once, and closed at the end', async () => {
    await using at = await setup()
    const { fake, adc } = at
    await drain(adc, [WEB1, SVC1], { timeout: '50s' })
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
  ])('is replaced when %i and %i say that it ended', async (status, errorcode) => {
    await using at = await setup({ expiry: { status, errorcode } })
    const { fake, adc } = at
    await fake.occupy(WEB1, { persistent: 1 })
    const run = startDrain(adc, WEB1, { timeout: '50s' })
    await eventually(() => {
      expect(run.report().members[0]?.lastReading).toMatchObject({ own: 'drain' })
    })
    fake.expireSessions()
    expect((await run.done).outcome).toBe('idle')
    expect(fake.requests.filter(({ line }) => line.includes('/login'))).toHaveLength(2)
    expect(actions(fake)).toEqual([DISABLE])
    await run.close()
  })

  test('fails once with a wrong password, which is never shown', async () => {
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
    expect((await drain(adc, inner, { timeout: '50s' })).outcome).toBe('idle')
    expect(fake.look(inner).enabled).toBe(false)
    await expect(drain(adc, WEB1)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })
})

describe('TLS', { concurrent: true }, () => {
  test('accepts a pinned certificate, and no unknown one', async () => {
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
