import type { DrainableProvider } from '../../provider/contract.js'
import type { DrainEvent } from '../events.js'
import { Run } from '../runner/run.js'
import type { PartHooks, RunSpec } from '../runner/run-spec.js'
import { sinceSaved, thawMember } from '../tickets/thaw.js'
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
    const info = await scheduler.describe(signal, limit())
    const options = {
      now: clock.now(),
      wallOffset: wallOffsetOf(clock),
      since: sinceSaved(ticket.saved, clock),
      goal: { kind: 'drain' as const },
      deadline,
    }
    return {
      policy: toResumedPolicy(resolved.data, info.capabilities, subject),
      states: ticket.members.map((member) => thawMember(member, options)),
      keeper,
    }
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
