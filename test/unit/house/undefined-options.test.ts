import { describe, expect, test } from 'vitest'
import { drain, ready, select, startDrain } from 'drainable'
import { f5Bigip } from 'drainable/f5-bigip'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { adapterNames } from '../../../scripts/package/entries.ts'
import { LOGIN, type GivenOptions } from '../../support/given-options.js'

const web1 = { pool: 'web', member: 'web1' }

/** Every option of each is `undefined`, as when a caller passes on its own options. */
const factories = (
  await Promise.all(
    adapterNames().map(async (name) => {
      const file = new URL(`../${name}/given-options.ts`, import.meta.url).href
      return ((await import(file)) as { given: readonly GivenOptions[] }).given
    }),
  )
).flat()

describe('an option that is undefined is absent', () => {
  test.each(factories)('%s', (_, given, optional, make) => {
    const options = { ...given, ...Object.fromEntries(optional.map((key) => [key, undefined])) }
    expect(() => make(options as never)).not.toThrow()
  })

  test.each(factories)('%s: an unknown name is refused nevertheless', (_, given, _o, make) => {
    expect(() => make({ ...given, surely: undefined } as never)).toThrow(/unknown option 'surely'/)
  })

  test('in nested options too', () => {
    const tls = { ca: undefined, insecure: true as const, servername: undefined }
    expect(() => f5Bigip({ ...LOGIN, tls })).not.toThrow()
  })

  test('of the verbs', async () => {
    const clock = fakeClock()
    const lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock })
    const policy = {
      timeout: undefined,
      settle: undefined,
      signal: undefined,
      tickets: undefined,
      id: undefined,
      onTicket: undefined,
      seal: undefined,
      keepReady: undefined,
      escalateAfter: undefined,
      clock,
    }
    const report = await clock.runUntil(drain(lb, web1, policy as never))
    expect(report.outcome).toBe('idle')
    const call = { clock, signal: undefined, waitHealthy: undefined }
    await clock.runUntil(ready(lb, web1, call as never))
    await clock.runUntil(select(lb, web1, { clock, signal: undefined }))
  })

  test('is not absent in a target, where it would mean the whole pool', () => {
    const lb = fakeProvider({ pools: { web: ['web1'] } })
    const target = { pool: 'web', member: undefined }
    expect(() => startDrain(lb, target as never)).toThrow(/target/)
  })
})
