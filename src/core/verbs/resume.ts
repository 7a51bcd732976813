import type { DrainableProvider } from '../../provider/contract.js'
import { DrainHandle, EventHub, type Drain } from '../runner/handle.js'
import { Run } from '../runner/run.js'
import { thawMember } from '../tickets/thaw.js'
import type { Ticket } from '../tickets/ticket.js'
import { toResumedPolicy } from './policy.js'
import { resumeOptions, type ResumeOptions } from './resume-options.js'
import { baseSpec, sameKeeper, wallOffsetOf } from './spec.js'

/**
 * Goes on with a drain from its ticket, in this process or another: same members, same deadline. It
 * starts from draining, without a proof: only what this process reads itself leads to idle.
 *
 * @throws `TICKET_INVALID` at once where it is no ticket or belongs to another balancer
 */
export function resumeDrain(p: DrainableProvider, ticket: Ticket, o: ResumeOptions = {}): Drain {
  const subject = 'resumeDrain()'
  const { provider, ticket: known, resolved } = resumeOptions(p, ticket, o, subject, true)
  const hub = new EventHub(resolved.onEvent)
  const { clock } = resolved
  const deadline = known.deadline === null ? null : Date.parse(known.deadline) - wallOffsetOf(clock)
  const keeper = sameKeeper(known, resolved)
  const run = new Run({
    ...baseSpec(provider, resolved, subject, (event) => hub.emit(event)),
    side: 'drain',
    refs: known.members.map(({ ref }) => ref),
    timeout: deadline === null ? null : Math.max(0, deadline - clock.now()),
    resumed: known,
    keeper: () => keeper,
    prepare: async ({ scheduler, signal, limit }) => {
      const info = await scheduler.describe(signal, limit())
      const options = {
        now: clock.now(),
        wallOffset: wallOffsetOf(clock),
        goal: { kind: 'drain' as const },
        deadline,
      }
      return {
        policy: toResumedPolicy(resolved.data, info.capabilities, subject),
        states: known.members.map((member) => thawMember(member, options)),
        keeper,
      }
    },
  })
  return new DrainHandle(hub, run)
}
