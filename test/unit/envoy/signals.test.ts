import { expect, test } from 'vitest'
import { callbackEndpoints, envoy, restEndpoints } from 'drainable/envoy'
import { startFake } from 'drainable/testing/envoy'
import { systemClock as clock } from '../../../src/provider/clock.js'
import { ctx, names, setOf } from './web-set.js'

test('a hanging admin function does not hold an aborted call', async () => {
  const sink = callbackEndpoints({
    load: () => Promise.resolve(setOf(names)),
    publish: () => Promise.resolve(),
  })
  await using lb = envoy({ endpoints: sink, admin: () => new Promise(() => undefined) })
  const hung = new Promise((resolve) => setTimeout(resolve, 1_000, 'hung'))
  const call = lb.observe('all', ctx(50)).catch(() => 'aborted')
  expect(await Promise.race([call, hung])).toBe('aborted')
})

test('a call that waits for the adoption ends with its own signal only', async () => {
  await using fake = await startFake({ pools: { web: names } })
  fake.fail({ how: 'silent' })
  await using lb = envoy({ endpoints: restEndpoints({ port: 0 }), admin: [fake.url] })
  const one = lb.observe('all', ctx(100)).catch((error: unknown) => error)
  await one // nothing else would end it
  const reason = new Error('mine alone')
  const giveUp = new AbortController()
  const other = lb.observe('all', { signal: giveUp.signal, clock }).catch((e: unknown) => e)
  const second = lb.observe('all', ctx()).catch((error: unknown) => error)
  // They wait for the adoption of the first call, or begin one of their own.
  await expect.poll(() => fake.requests.length).toBeGreaterThan(0)
  giveUp.abort(reason)
  expect(await other).toBe(reason)
  expect(await second).not.toBe(reason)
})
