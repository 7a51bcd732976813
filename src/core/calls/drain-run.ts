import type { DrainableProvider } from '../../provider/contract.js'
import type { DrainEvent } from '../events.js'
import { Run } from './run/run.js'
import type { PartHooks, PreparedClaim, RunSpec } from './run/run-spec.js'
import { NO_PROOF, type MachinePolicy } from '../member/record.js'
import type { ClaimedMember } from '../member/claimed.js'
import { type FromTicket, fromTicketMember } from '../tickets/member.js'
import type { PolicyData, Ticket } from '../tickets/ticket.js'
import { type ResolvedPolicy, toMachinePolicy, toResumedPolicy } from './policy.js'
import { prepareDrain } from './prepare-drain.js'
import type { ResolvedTarget } from './target.js'
import { isoOf, wallOf } from '../../provider/clock.js'
import { combinedOf } from '../combined.js'
import { TicketKeeper, type TicketHead } from '../tickets/writing/writer.js'
import { type HeldBy, ownerHere } from '../tickets/owner.js'

/** Hooks that connect a run on one balancer with the runs on others; a single run has none. */
export type Hooks = Partial<PartHooks>

/** The fields of a spec that come from these hooks. */
function hooked({ group, startedAt, replaced }: Hooks): Partial<RunSpec> {
  return {
    ...(group === undefined ? {} : { group }),
    ...(replaced === undefined ? {} : { replaced }),
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

/**
 * Makes the run that takes members out which other calls of this process hold: it changes nothing of how they are held. It proves
 * idle anew, and its ticket is theirs (`resolved.whole`).
 *
 * @param held - the members as those calls see them
 */
export function removalRun(
  provider: DrainableProvider,
  held: readonly ClaimedMember[],
  resolved: ResolvedPolicy,
  subject: string,
  emit: (event: DrainEvent) => void,
): Run {
  const { clock, data } = resolved
  const keeper = newKeeper(resolved, provider)
  const prepare: RunSpec['prepare'] = async ({ scheduler, startedAt, signal, limit }) => {
    const { capabilities } = await scheduler.describe(signal, limit())
    const policy = toMachinePolicy({ ...data, until: 'removed' }, capabilities, [], subject)
    const deadline = data.timeout === null ? null : startedAt + data.timeout
    const claims = held.map(({ ref, claim: { confirmed } }) => {
      const proof = { ...NO_PROOF, effectiveSince: clock.now() }
      const inPlace = { wish: confirmed, confirmed, held: true, floor: 'kept', proof } as const
      const goal = { kind: 'drain' } as const
      return { ref, start: { goal, policy, startedAt, deadline, ...inPlace } }
    })
    return { claims, keeper }
  }
  const refs = held.map(({ ref }) => ref)
  const base = baseSpec(provider, resolved, subject, emit)
  return new Run({ ...base, side: 'drain', refs, keeper: () => keeper, prepare })
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

/** Epoch milliseconds minus the clock's `now()`, at present. */
export function wallOffsetOf(clock: ResolvedPolicy['clock']): number {
  return wallOf(clock) - clock.now()
}

/** Makes the keeper for the ticket of a new drain. */
export function newKeeper(...call: Parameters<typeof newHead>): TicketKeeper {
  const [{ clock, tickets, onTicket, whole }] = call
  return new TicketKeeper(newHead(...call), { store: tickets, onTicket, whole }, clock)
}

/** What the ticket of a new call says of it as a whole. */
export function newHead(
  resolved: ResolvedPolicy,
  provider: DrainableProvider,
  heldBy: HeldBy = 'process',
  startedAt = resolved.clock.now(),
): TicketHead {
  const { clock, data, id, owner } = resolved
  const { timeout } = data
  const before = startedAt - clock.now()
  const own = new Map([[null, provider]])
  const parts = [...(combinedOf(provider)?.all ?? own)]
  return {
    id: id ?? crypto.randomUUID(),
    instance: provider.instance,
    parts: parts.map(([balancer, { name, instance }]) => ({ balancer, name, instance })),
    startedAt: isoOf(clock, before),
    deadline: timeout === null ? null : isoOf(clock, before + timeout),
    policy: data,
    owner: ownerHere(owner ?? null, heldBy),
    ...markOf(resolved),
  }
}

/** The lease in a ticket: that of the process that writes it, not of the process that began it. */
function markOf({ term }: ResolvedPolicy): Pick<Ticket, 'lease'> {
  return term === undefined ? {} : { lease: term.mark }
}

/** Makes the keeper for a ticket that another run began: this process owns it from now on. */
export function sameKeeper(
  ticket: Ticket,
  resolved: ResolvedPolicy,
  heldBy: HeldBy = 'process',
): TicketKeeper {
  const { id, instance, parts, startedAt, deadline, policy } = ticket
  const { tickets, onTicket, whole, clock } = resolved
  const owner = ownerHere(resolved.owner ?? ticket.owner.name, heldBy)
  return new TicketKeeper(
    { id, instance, parts, startedAt, deadline, policy, owner, ...markOf(resolved) },
    { store: tickets, onTicket, whole },
    clock,
    ticket.lease,
  )
}

/** The part of a spec that all runs with a policy have in common. */
export function baseSpec(
  provider: DrainableProvider,
  resolved: ResolvedPolicy,
  subject: string,
  emit: (event: DrainEvent) => void,
): Pick<
  RunSpec,
  | 'provider'
  | 'subject'
  | 'clock'
  | 'signal'
  | 'onAbort'
  | 'keepReady'
  | 'timeout'
  | 'onTimeout'
  | 'patient'
  | 'emit'
  | 'permit'
  | 'pace'
> {
  const { data, clock, signal, term, pace } = resolved
  const { onAbort, keepReady, timeout, onTimeout, onUnreachable }: PolicyData = data
  const base = {
    provider,
    subject,
    clock,
    signal,
    onAbort,
    keepReady,
    timeout,
    onTimeout,
    pace,
    emit,
  }
  const patient = onUnreachable === 'wait'
  return { ...base, patient, ...(term === undefined ? {} : { permit: term.permit }) }
}
