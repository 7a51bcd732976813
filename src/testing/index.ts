/**
 * Test tools for code that drains: the provider contract as a test suite, an in-memory balancer, and a fake clock.
 * The protocol fakes, which speak each balancer's own protocol on a real socket, have their own entries
 * (`drainable/testing/haproxy-runtime` and so on).
 *
 * @example Thirty minutes of a drain in milliseconds
 * ```ts
 * import { drain, isDrainableError } from 'drainable'
 * import { fakeClock, fakeProvider } from 'drainable/testing'
 *
 * const clock = fakeClock()
 * const lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock })
 * lb.occupy({ pool: 'web', member: 'web1' })
 * const run = drain(lb, { pool: 'web', member: 'web1' }, { timeout: '30m', pace: '1s', clock })
 * const error = await clock.runUntil(run.catch((e: unknown) => e))
 * console.log(isDrainableError(error, 'DRAIN_TIMEOUT')) // true
 * ```
 *
 * @module drainable/testing
 */
export { providerContract } from './contract/index.js'
export type { CaseContext, ContractCase, ContractHarness } from './contract/index.js'
export { fakeClock } from './fake-clock.js'
export type { FakeClock } from './fake-clock.js'
export { fakeLease } from './fake-lease.js'
export type { FakeLease, FakeLeaseFailure, FakeLeaseOptions } from './fake-lease.js'
export { fakeProvider } from './fake-provider.js'
export type {
  FakeCall,
  FakeFailure,
  FakeFailureOptions,
  FakeProvider,
  FakeProviderOptions,
  FakeScope,
} from './fake-provider.js'
export type { HttpFake, HttpFakeFailure, HttpFakeRequest } from './http/request.js'
export type { FakeTls } from './http/tls.js'
export type { ProtocolFailure, ProtocolFake, ProtocolRequest } from './protocol-fake.js'
