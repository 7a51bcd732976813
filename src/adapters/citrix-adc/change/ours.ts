import { refusal } from '../../../kit/errors.js'
import type { Change } from '../../../provider/contract.js'
import type { DrainableError, ErrorCode } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import type { Traits } from '../codec/rows.js'
import type { Settings } from '../options.js'
import type { Standpoint } from './look.js'

export const PROVIDER = 'citrix-adc'

/** A refusal of one change, its words naming the member. */
export function refuse(
  code: ErrorCode,
  words: string,
  ref: Change['ref'],
  retryable?: boolean,
): DrainableError {
  return refusal(code, words, { provider: PROVIDER, ref }, retryable)
}

/** Members that are not ours to change one by one. */
export function assertOurs(
  { ref }: Change,
  { entry, traits }: Standpoint,
  settings: Settings,
): void {
  const { subject } = entry
  if (subject.kind === 'member' && subject.address !== undefined) {
    const words = `${formatRef(ref)}: several members of the group have server '${subject.server}' and port ${subject.port} (made by DNS), and an action would hit all of them: take its address out of DNS, with autoDisableGraceful and autoDelayedTrofs set on the group`
    throw refuse('UNSUPPORTED', words, ref)
  }
  assertNoDesiredState(ref, traits, settings)
}

/** Groups whose members another client lists. */
export function assertNoDesiredState(
  ref: Change['ref'],
  { autoscale }: Traits,
  { desiredState }: Settings,
): void {
  if ((autoscale !== 'API' && autoscale !== 'DNS') || desiredState !== 'refuse') return
  const words = `service group '${ref.pool}' has autoscale ${autoscale}: its members are kept by the desired state or by DNS, change it there, or set desiredState: 'try'`
  throw refuse('UNSUPPORTED', words, ref)
}
