import * as z from 'zod/mini'
import type {
  AdminState,
  Capabilities,
  DrainableProvider,
  MemberRef,
} from '../provider/contract.js'
import { systemClock, type Clock } from '../provider/clock.js'
import { fn } from '../provider/option-schemas.js'
import { DrainableError } from '../provider/error.js'
import { refKey } from '../provider/member-ref.js'
import { once, parseOptions, readGiven } from '../provider/options.js'
import { quote } from '../provider/quote.js'
import { balancersOf } from './balancers.js'
import { bareRef, tagWhy } from './combined/tag.js'
import { CALL_LIMIT } from '../core/balancer/look/call.js'
import { readingOf, type SeenLook } from '../core/balancer/look/look.js'
import { schedulerOf } from '../core/balancer/look/scheduler.js'
import { type MachinePolicy, newClaim, newRecord } from '../core/member/record.js'
import { claimedOf, type ClaimedMember } from '../core/member/claimed.js'
import { step } from '../core/member/step.js'
import { statusOf, type MemberStatus } from '../core/status.js'
import { judgeOwner } from '../core/tickets/owner.js'
import { checkStore, type TicketStore } from '../core/tickets/store.js'
import type { Lease } from './lease/lease.js'
import { leaseSchema } from './lease/lease-option.js'
import { Leadership, Term } from './lease/leadership.js'
import { fromTicketMember, isSame, mayOwe, owedOf } from '../core/tickets/member.js'
import { askedFirst } from '../core/tickets/calls.js'
import { readTickets, type OnUnreadable } from '../core/tickets/read-tickets.js'
import { belongsTo, drainsOf, type Ticket, type TicketMember } from '../core/tickets/ticket.js'
import { callShape, checkProvider, isProvider, type Call } from '../core/calls/call-options.js'
import { toResumedPolicy } from '../core/calls/policy.js'
import { wallOffsetOf } from '../core/calls/drain-run.js'

/** A member of an orphan, in its present state. */
export interface OrphanMember extends MemberStatus {
  /** Its own state on the balancer now; null if it is gone, or another member has its name. */
  readonly own: AdminState | 'unknown' | null
  /** Whether `restore()` with the ticket has something to undo, or a change that was sent may still take effect. */
  readonly owes: boolean
}

/** A drain that no process continues, as far as this machine can tell. */
export interface Orphan {
  /** The ticket to resume it with (`resumeDrain`, or `resumeRoll` for a roll) or to undo it with (`restore`). */
  readonly ticket: Ticket
  /**
   * `gone`: the process that drained has ended, or its lease has. `unknown`: the process ran on another machine, or
   * the drain is made by `stepDrain`.
   */
  readonly owner: { readonly state: 'gone' | 'unknown'; readonly text: string }
  readonly members: readonly OrphanMember[]
}

/** Options of {@link findOrphans}. */
export interface FindOrphansOptions extends Pick<Call, 'signal' | 'clock'> {
  /**
   * The lease of the rolls and reconcilers that wrote the tickets. If another contender holds it, that one continues
   * them, on whatever machine: they are not orphans. To find out, the call takes the lease for a moment if it is
   * free.
   * @defaultValue none: only processes of this machine can be seen
   */
  readonly lease?: Lease | undefined
  /** Called for a ticket that can't be read, of any balancer; without it, such a ticket is an error. */
  readonly onUnreadable?: ((id: string, error: DrainableError) => void) | undefined
  /**
   * Called for an abandoned drain that may hold members of this balancer, and that this provider can neither resume nor
   * undo: it is of several balancers, or, for a combined provider, of one alone. The ticket's `parts` say which.
   */
  readonly onElsewhere?: ((ticket: Ticket, held: readonly MemberRef[]) => void) | undefined
}

const optionsSchema = /* @__PURE__ */ once(() =>
  z.strictObject({
    signal: callShape().signal,
    clock: callShape().clock,
    onUnreadable: z.exactOptional(fn<OnUnreadable>()),
    onElsewhere: z.exactOptional(fn<NonNullable<FindOrphansOptions['onElsewhere']>>()),
    lease: z.exactOptional(leaseSchema()),
  }),
)

/**
 * Finds the abandoned drains of this balancer: their ticket is in the store, and the process that wrote it is gone or
 * can't be checked. One look at their members shows which are held now; nothing is changed. A ticket is not an orphan
 * while its process lives, whatever happened to its drain.
 *
 * A process on another machine or in another container, or from before a reboot, can't be checked from here: its
 * ticket is listed with `owner.state` `unknown`. It is harmless to resume a drain that another process continues, but
 * not to undo it: make sure first, or give the `lease` that they use.
 *
 * @param store - the store of the drains' tickets (`Policy.tickets`)
 * @param provider - a provider of the balancer; tickets of other balancers, and of more than this one, are left out
 * @throws `UNSUPPORTED` if the store can't list its keys; `TICKET_INVALID` naming tickets that can't be read, unless
 *   `onUnreadable` takes them; the error of the store or the balancer; `signal.reason` on abort
 * @example
 * ```ts
 * import { fileTickets, findOrphans, restore, type DrainableProvider } from 'drainable'
 *
 * export async function undoLeftovers(lb: DrainableProvider): Promise<void> {
 *   const tickets = fileTickets('/var/lib/drains')
 *   for (const { ticket, owner, members } of await findOrphans(tickets, lb)) {
 *     console.log(ticket.id, owner.text, ticket.startedAt, members.map((member) => member.own))
 *     if (owner.state === 'gone') await restore(lb, ticket, { tickets })
 *   }
 * }
 * ```
 */
export async function findOrphans(
  store: TicketStore,
  provider: DrainableProvider,
  options: FindOrphansOptions = {},
): Promise<readonly Orphan[]> {
  const subject = 'findOrphans()'
  const isBalancer = (what: string, value: unknown): boolean =>
    readGiven(`${subject}: ${what}`, () => isProvider(value))
  if (isBalancer('store', store) && !isBalancer('provider', provider)) {
    const words = 'the store comes first: findOrphans(store, provider)'
    throw new DrainableError('INVALID_OPTIONS', `${subject}: ${words}`)
  }
  checkStore(store, subject)
  checkProvider(provider, subject)
  const { clock = systemClock, ...given } = parseOptions(optionsSchema(), options, subject)
  const { onUnreadable, onElsewhere } = given
  const signal = given.signal ?? new AbortController().signal
  signal.throwIfAborted()
  const tickets = await readTickets(store, askedFirst({ clock, signal }), subject, onUnreadable)
  const judge = ownerJudge(given.lease, clock, subject, signal)
  const left: Pick<Orphan, 'ticket' | 'owner'>[] = []
  for (const ticket of tickets) {
    const isOurs = belongsTo(ticket, provider)
    const held = isOurs || onElsewhere === undefined ? [] : heldHere(ticket, provider)
    if (!isOurs && held.length === 0) continue
    const { state, text } = await judge(ticket)
    if (state === 'lives') continue
    if (isOurs) left.push({ ticket, owner: { state, text } })
    else onElsewhere?.(ticket, held)
  }
  const seen = await Promise.all(
    [...balancersOf(provider)].map(([key, part]) =>
      lookAt(
        part,
        key,
        left.flatMap(({ ticket }) => drainsOf(ticket).flatMap(({ members }) => members)),
        clock,
        signal,
      ),
    ),
  )
  const looks = new Map(seen)
  return left.map(({ ticket, owner }) => ({
    ticket,
    owner,
    members: drainsOf(ticket).flatMap((drain) =>
      drain.members.flatMap((member) => {
        const look = looks.get(member.ref.balancer)
        return look === undefined ? [] : [orphanMember(drain, member, look, clock, subject)]
      }),
    ),
  }))
}

/** The members of this balancer, or of these, that a ticket of others may hold. */
function heldHere(ticket: Ticket, provider: DrainableProvider): readonly MemberRef[] {
  const ours = [...balancersOf(provider).values()]
  const isHere = ({ ref }: TicketMember): boolean =>
    ticket.parts.some(
      ({ balancer, name, instance }) =>
        balancer === (ref.balancer ?? null) &&
        ours.some((one) => one.name === name && one.instance === instance),
    )
  return drainsOf(ticket)
    .flatMap(({ members }) => members.filter((member) => mayOwe(member) && isHere(member)))
    .map(({ ref }) => ref)
}

/** How long the lease is taken just to see whether it is free, in milliseconds. */
const ASKED_FOR = 2_000

/**
 * Judges the owners of tickets: those on other machines by the lease under which their tickets were written, because its holder
 * continues them. The lease is asked once, and only if it decides.
 *
 * @throws (the judge) the error of the lease's engine; `signal.reason`
 */
function ownerJudge(
  lease: Lease | undefined,
  clock: Clock,
  subject: string,
  signal: AbortSignal,
): (ticket: Ticket) => Promise<ReturnType<typeof judgeOwner>> {
  let asked: ReturnType<typeof judgeHolder> | undefined
  return async ({ owner, lease: mark }) => {
    const judged = judgeOwner(owner)
    if (judged.state !== 'unknown' || lease === undefined || mark?.name !== lease.name)
      return judged
    asked ??= judgeHolder(lease, clock, subject, signal)
    const { state, text } = await asked
    return { state, text: `${judged.text}; ${text}` }
  }
}

/** Takes the lease for a moment, where it is free. */
async function judgeHolder(
  lease: Lease,
  clock: Clock,
  subject: string,
  signal: AbortSignal,
): Promise<{ readonly state: 'lives' | 'gone'; readonly text: string }> {
  const leadership = new Leadership({ lease, ttl: ASKED_FOR, clock, owner: subject, subject })
  const answer = await leadership.acquire(signal)
  const name = `the lease ${quote(lease.name)}`
  if (!(answer instanceof Term)) {
    const holder = answer.holder === null ? 'a process' : quote(answer.holder)
    return { state: 'lives', text: `${holder} has ${name}` }
  }
  await answer.release()
  return { state: 'gone', text: `no process has ${name}` }
}

/** The members of one balancer, as read now. */
interface Seen {
  readonly look: SeenLook
  readonly capabilities: Capabilities
}

async function lookAt(
  provider: DrainableProvider,
  key: string | undefined,
  members: readonly TicketMember[],
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly [string | undefined, Seen | undefined]> {
  // Several tickets can hold one member.
  const refs = new Map(
    members.flatMap(({ ref }) =>
      ref.balancer === key ? [[refKey(ref), bareRef(ref)] as const] : [],
    ),
  )
  if (refs.size === 0) return [key, undefined]
  const scheduler = schedulerOf(provider, clock)
  const { capabilities } = await scheduler.describe(signal, CALL_LIMIT)
  const look = await scheduler.look([...refs.values()], signal, CALL_LIMIT)
  return [key, { look, capabilities }]
}

function orphanMember(
  ticket: Ticket,
  tagged: TicketMember,
  { look, capabilities }: Seen,
  clock: Clock,
  subject: string,
): OrphanMember {
  const member = { ...tagged, ref: bareRef(tagged.ref) }
  const policy = toResumedPolicy(ticket.policy, capabilities, subject)
  const [now, wallOffset] = [clock.now(), wallOffsetOf(clock)]
  const claimed = claimedNow(member, look, { now, wallOffset }, policy)
  const reading = readingOf(look.snapshot, member.ref)
  const same = reading.present && isSame(member, reading)
  const { startedAt: since, deadline } = ticket
  const status = statusOf(claimed, { since, deadline, now, wallOffset })
  const key = tagged.ref.balancer
  return {
    ...status,
    ref: tagged.ref,
    why: key === undefined ? status.why : status.why.map((why) => tagWhy(why, key)),
    own: same ? reading.own : null,
    owes: owedOf(member, reading) !== undefined,
  }
}

/** A member as a claim of the ticket would see it after one look that changes nothing. */
function claimedNow(
  member: TicketMember,
  { snapshot, askedAt, took }: SeenLook,
  { now, wallOffset }: { readonly now: number; readonly wallOffset: number },
  policy: MachinePolicy,
): ClaimedMember {
  const goal = { kind: 'watch' } as const
  const { claim, left } = fromTicketMember(member, { now, wallOffset, goal, deadline: null })
  const mine = newClaim({ ...claim, policy, id: 1, view: 0 })
  const record = { ...newRecord(member.ref, now), ledger: left.ledger, claims: [mine] }
  const reading = readingOf(snapshot, member.ref)
  const { ended } = snapshot
  const look = { type: 'look', view: 0, reading, askedAt, took, ended, random: 0 } as const
  const after = step(record, { ...look, at: now, wall: now + wallOffset }).record
  return claimedOf(after, after.claims[0] ?? mine)
}
