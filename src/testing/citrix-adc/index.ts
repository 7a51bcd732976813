/**
 * A fake Citrix ADC (NetScaler) appliance for tests of programs that drain through it: NITRO over a real socket, with
 * the appliance's refusals.
 *
 * @example
 * ```ts
 * import { drain } from 'drainable'
 * import { citrixAdc } from 'drainable/citrix-adc'
 * import { startFake } from 'drainable/testing/citrix-adc'
 *
 * await using fake = await startFake({ pools: { web: ['10.0.0.1:80', '10.0.0.2:80'] } })
 * await using adc = citrixAdc({
 *   url: fake.url,
 *   username: fake.username,
 *   password: fake.password,
 *   tls: { ca: fake.ca },
 * })
 * const report = await drain(adc, { pool: 'web', member: '10.0.0.1:80' })
 * console.log(report.outcome)
 * ```
 *
 * @module drainable/testing/citrix-adc
 */
import { openFake } from './fake.js'
import type { CitrixFake } from './fake.js'
import type { FakeOptions } from './options.js'

export type { CitrixFake, FakeLoad, FakeMemberState } from './fake.js'
export type {
  FakeConfig,
  FakeFailure,
  FakeMember,
  FakeOptions,
  FakePool,
  FakeRequest,
} from './options.js'

/** Starts a fake appliance, or a pair of them. */
export function startFake(options: FakeOptions = {}): Promise<CitrixFake> {
  return openFake(options)
}
