import { Waits } from '../../provider/abort.js'
import type { DrainableProvider, MemberRef } from '../../provider/contract.js'
import { mayOwe } from '../../core/tickets/member.js'
import type { DrainEvent } from '../../core/events.js'
import { CALL_LIMIT } from '../../core/balancer/look/call.js'
import { askedFirst, type Asked } from '../../core/tickets/calls.js'
import { keptTicket } from '../../core/tickets/read-tickets.js'
import { belongsTo, refuseRoll, type Ticket } from '../../core/tickets/ticket.js'
import { deadlineOf, newDrainRun, newKeeper, resumedRun } from '../../core/calls/drain-run.js'
import type { ResolvedPolicy } from '../../core/calls/policy.js'
import { ofAnother, undoLost } from '../../core/calls/prepare-drain.js'
import { parseTarget, type Target } from '../../core/calls/target.js'
import type { WholeTicket } from '../../core/tickets/writing/writer.js'
import { checkKeys, divide, type Divided } from './divide.js'
import type { Parts } from '../../core/combined.js'
import { CombinedRun } from './run.js'
import { bareRef } from './tag.js'
import { SharedTicket, sliceTicket, unreadIn } from './ticket.js'

/** Begins a drain over several balancers. */
export function drainCombined(
  provider: DrainableProvider,
  parts: Parts,
  target: Target,
  policy: ResolvedPolicy,
  subject: string,
  emit: (event: DrainEvent) => void,
): CombinedRun {
  checkKeys(target, parts, subject)
  const { clock, data, tickets: store, onTicket, whole } = policy
  const id = policy.id ?? crypto.randomUUID()
  const startedAt = clock.now()
  const waits = data.onUnreachable === 'wait'
  const limit = Math.min(CALL_LIMIT, data.timeout ?? CALL_LIMIT)
  const unanswered = new Waits(clock)
  const into = { store, onTicket, whole, clock, waits: unanswered }
  const ticket = new SharedTicket({ id, provider, parts, ...into })
  return new CombinedRun({
    kind: 'drain',
    provider,
    parts,
    subject,
    policy,
    emit,
    target,
    waits,
    divide: async (signal, away) => {
      const until = startedAt + (data.timeout ?? Infinity)
      const found = { clock, signal, limit, ...(waits ? { until, away } : {}) }
      const divided = await divide(target, parts, subject, found)
      const asked = askedFirst({ clock, signal, limit, waits: unanswered })
      await checkEarlier(policy, divided, provider, asked)
      ticket.awaits(divided)
      return divided
    },
    open: (key, part, of, hooks) => {
      const resolved = partPolicy(policy, id, ticket.part(key, part))
      return newDrainRun(part, parseTarget(of, subject), resolved, subject, hooks.emit, hooks)
    },
    ticket,
    unbegun: newKeeper({ ...policy, id }, provider, 'process', startedAt).ticket([]),
  })
}

/** Goes on with a drain over several balancers. One that was not read before the crash begins now. */
export function resumeCombined(
  provider: DrainableProvider,
  parts: Parts,
  ticket: Ticket,
  policy: ResolvedPolicy,
  subject: string,
  emit: (event: DrainEvent) => void,
): CombinedRun {
  const { clock, tickets: store, onTicket, whole } = policy
  const { id } = ticket
  const unread = unreadIn(ticket)
  const targets = new Map(
    ticket.parts.flatMap(({ balancer: key }): [string, Target][] =>
      key === null ? [] : [[key, unread.get(key) ?? refsOf(ticket, key)]],
    ),
  )
  const shared = new SharedTicket({ id, provider, parts, store, onTicket, whole, clock })
  for (const [key, part] of parts.all)
    if (targets.has(key) && !unread.has(key)) shared.seed(key, sliceTicket(ticket, key, part))
  shared.awaits(targets)
  const deadline = deadlineOf(ticket, policy)
  const timeout = deadline === null ? null : Math.max(0, deadline - clock.now())
  return new CombinedRun({
    kind: 'resume',
    provider,
    parts,
    subject,
    policy,
    emit,
    target: refsOf(ticket),
    waits: true,
    divide: () => Promise.resolve(targets),
    open: (key, part, of, hooks) => {
      const resolved = partPolicy(policy, id, shared.part(key, part))
      if (!unread.has(key)) {
        const slice = sliceTicket(ticket, key, part)
        return resumedRun(part, slice, resolved, subject, hooks.emit, hooks)
      }
      const data = { ...resolved.data, timeout, onUnreachable: 'wait' as const }
      const fresh = { ...resolved, data }
      return newDrainRun(part, parseTarget(of, subject), fresh, subject, hooks.emit, hooks)
    },
    ticket: shared,
    unbegun: ticket,
  })
}

/** The members of a ticket, of one balancer or of all, without its name. */
function refsOf(ticket: Ticket, key?: string): readonly MemberRef[] {
  const { members } = ticket
  const own = key === undefined ? members : members.filter(({ ref }) => ref.balancer === key)
  return own.map(({ ref }) => bareRef(ref))
}

/** The policy of one part: its ticket goes into the one of all. */
function partPolicy(
  policy: ResolvedPolicy,
  id: string,
  whole: WholeTicket | undefined,
): ResolvedPolicy {
  return { ...policy, id, onEvent: undefined, onTicket: undefined, tickets: undefined, whole }
}

/** A ticket of the same id that holds members of a balancer this drain is not about: its undo would be lost. */
export async function checkEarlier(
  { tickets: store, id }: Pick<ResolvedPolicy, 'tickets' | 'id'>,
  divided: Pick<Divided, 'has'>,
  provider: DrainableProvider,
  asked: Asked,
): Promise<void> {
  if (store === undefined || id === undefined) return
  const old = await keptTicket(store, id, asked)
  if (old === undefined) return
  const left = old.members.find(
    (member) => mayOwe(member) && !divided.has(member.ref.balancer ?? ''),
  )
  if (!belongsTo(old, provider)) throw ofAnother(old)
  refuseRoll(old)
  if (left !== undefined) throw undoLost(old, left.ref)
}
