/** `onTimeout: 'remove'`: what it needs of the other options, and of the product. */
import type { Capabilities } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import type { PolicyData } from '../tickets/ticket.js'

type Ending = Pick<PolicyData, 'onTimeout' | 'until'>

/** @throws `INVALID_OPTIONS` for a removal at the deadline of what is not to be removed */
export function checkRemoval({ onTimeout, until }: Ending, subject: string): void {
  if (onTimeout !== 'remove' || until === 'removed') return
  const words = `onTimeout: 'remove' takes the member out at the deadline, and until is '${until}', which keeps it: add until: 'removed', or use onTimeout: 'terminate'`
  throw new DrainableError('INVALID_OPTIONS', `${subject}: ${words}`)
}

/**
 * What is to be done at the deadline, as far as the product can: one that neither removes a busy member nor cuts does nothing.
 *
 * @param can - tells what the product lacks
 */
export function fitRemoval(
  { onTimeout, until }: Ending,
  { removal, terminate }: Capabilities,
  can: (what: boolean, lack: string) => boolean,
): Ending['onTimeout'] {
  if (onTimeout !== 'remove') return onTimeout
  const lack = `onTimeout: 'remove': this balancer removes no member that has work, and can't cut it; use onTimeout: 'fail' and remove it once it is idle`
  return until === 'removed' && can(removal !== 'refuses' || terminate, lack) ? 'remove' : 'fail'
}
