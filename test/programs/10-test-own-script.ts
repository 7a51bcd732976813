// Testing one's own deploy script: protocol fake (real socket, real time) and fake provider + fake clock (30 min in ms).
import { drain, ready, isDrainableError, type DrainableProvider } from 'drainable'
import type { Clock } from 'drainable/provider'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { startFake } from 'drainable/testing/haproxy-runtime'
declare function test(n: string, fn: () => Promise<void>): void
declare const assert: { equal(a: unknown, b: unknown): void }
async function deploy(
  lb: DrainableProvider,
  install: () => Promise<void>,
  o: { clock?: Clock } = {},
) {
  const m = { pool: 'web', member: 'web1' }
  await drain(lb, m, { timeout: '30m', settle: '0ms', ...o })
  await install()
  await ready(lb, m, o)
}
test('waits for the request', async () => {
  await using fake = await startFake({ pools: { web: ['web1', 'web2'] }, version: '3.2' })
  await using lb = haproxyRuntime({ socket: fake.socket })
  const end = await fake.occupy({ pool: 'web', member: 'web1' })
  let installed = false
  const run = deploy(lb, async () => {
    installed = true
  })
  assert.equal(installed, false)
  await end()
  await run
  assert.equal(fake.requests.filter((r) => /state drain/.test(r.line)).length, 1)
})
test('gives up after 30 min', async () => {
  const clock = fakeClock()
  const lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock })
  lb.occupy({ pool: 'web', member: 'web1' })
  const e = await clock.runUntil(deploy(lb, async () => {}, { clock }).catch((x: unknown) => x))
  assert.equal(
    isDrainableError(e, 'DRAIN_TIMEOUT') && e.report.members[0]?.why[0]?.code,
    'in-flight',
  )
})
