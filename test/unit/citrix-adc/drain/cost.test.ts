import { startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../../src/provider/clock.js'
import { WEB1, WEB2, setup } from './set-up.js'

describe('an appliance at its own pace', { concurrent: true }, () => {
  test('reaches idle within the rule when statistics take seven seconds', async () => {
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
  }, 120_000)
})

test('a thousand members are read in as many requests as one', async () => {
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
