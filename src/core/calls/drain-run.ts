import type { DrainableProvider } from '../../provider/contract.js'
import type { DrainEvent } from '../events.js'
import { Run } from './run/run.js'
import type { PartHooks, PreparedClaim, RunSpec } from './run/run-spec.js'
import type { MachinePolicy } from '../member/policy.js'
import { fromTicketMember, type FromTicket } from '../tickets/member.js'
import type { Ticket } from '../tickets/ticket.js'
import { toResumedPolicy, type ResolvedPolicy } from './policy.js'
import { prepareDrain } from './prepare-drain.js'
import { baseSpec, newKeeper, sameKeeper, wallOffsetOf } from './spec.js'
import type { ResolvedTarget } from './target.js'

/** Hooks that connect a run on one balancer with the runs on others; a single run has none. */
export type Hooks = Partial<PartHooks>

/** The fields of a spec that come from these hooks. */
function hooked({ company, startedAt }: Hooks): Partial<RunSpec> {
  return {
    ...(company === undefined ? {} : { company }),
    ...(startedAt === undefined ? {} : { startedAt }),
  }
}

/** Makes the run of a new drain on one balancer. */
export function newDrainRun(
  provider: DrainableProvider,
  target: ResolvedTarget,
  resolved: ResolvedPolicy,
  subject: string,
  emit: (event: DrainEvent) => void,
  hooks: Hooks = {},
): Run {
  const keeper = newKeeper(resolved, provider, 'process', hooks.startedAt)
  const prepare: RunSpec['prepare'] = (context) =>
    prepareDrain(context, resolved, target, subject, keeper)
  return new Run({
    ...baseSpec(provider, resolved, subject, emit),
    ...hooked(hooks),
    side: 'drain',
    refs: target.kind === 'members' ? target.refs : undefined,
    keeper: () => keeper,
    prepare: hooks.around?.(prepare) ?? prepare,
  })
}

/** Makes the run of a drain that continues from its ticket, on one balancer. */
export function resumedRun(
  provider: DrainableProvider,
  ticket: Ticket,
  resolved: ResolvedPolicy,
  subject: string,
  emit: (event: DrainEvent) => void,
  hooks: Hooks = {},
): Run {
  const { clock } = resolved
  const deadline = deadlineOf(ticket, resolved)
  const keeper = sameKeeper(ticket, resolved)
  const prepare: RunSpec['prepare'] = async ({ scheduler, signal, limit }) => {
    const { capabilities } = await scheduler.describe(signal, limit())
    const policy = toResumedPolicy(resolved.data, capabilities, subject)
    const goal = { kind: 'drain' as const }
    const options = { now: clock.now(), wallOffset: wallOffsetOf(clock), goal, deadline }
    return { claims: claimsOf(ticket, policy, options), keeper }
  }
  return new Run({
    ...baseSpec(provider, resolved, subject, emit),
    ...hooked(hooks),
    side: 'drain',
    refs: ticket.members.map(({ ref }) => ref),
    timeout: deadline === null ? null : Math.max(0, deadline - clock.now()),
    resumed: ticket,
    keeper: () => keeper,
    prepare: hooks.around?.(prepare) ?? prepare,
  })
}

/** The deadline of a ticket by the run's clock; null for none. */
export function deadlineOf({ deadline }: Ticket, { clock }: ResolvedPolicy): number | null {
  return deadline === null ? null : Date.parse(deadline) - wallOffsetOf(clock)
}

/** The claims of a run that goes on with a ticket, or undoes it. */
export function claimsOf(
  { members }: Ticket,
  policy: MachinePolicy,
  options: FromTicket,
): readonly PreparedClaim[] {
  return members.map((member) => {
    const { claim, left } = fromTicketMember(member, options)
    return { ref: member.ref, start: { ...claim, policy }, left }
  })
}
