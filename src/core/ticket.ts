import { z } from 'zod'
import type { AdminState, Json, MemberRef } from '../provider/contract.js'
import { DrainableError } from '../provider/error.js'
import type { Outcome } from '../provider/report.js'
import type { DrainState } from './machine/state.js'
import type { PolicyData } from './policy-data.js'

/** One change of one member, as the ticket knows it. */
export interface TicketChange {
  readonly kind: 'hold' | 'terminate' | 'remove'
  readonly to?: 'drain' | 'maint'
  /** `unchanged`: it was so before us, so an undo leaves it alone. */
  readonly state: 'intended' | 'applied' | 'unchanged'
  /** ISO 8601. */
  readonly at: string
}

/** One member, as the ticket knows it. */
export interface TicketMember {
  readonly ref: MemberRef
  readonly identity: string | null
  /** The own state an undo goes back to. */
  readonly wasAdmin: AdminState | null
  readonly native: Json | null
  readonly changes: readonly TicketChange[]
  readonly outcome: Outcome | null
  /** The machine's state, times in epoch milliseconds. */
  readonly state: Json
}

/**
 * What is needed to go on with a drain, or to undo it, from another process. Plain JSON, no secrets.
 * Written before and after each change.
 */
export interface Ticket {
  readonly v: 1
  readonly id: string
  /** Which balancer: a resume on another one is refused. */
  readonly instance: string
  /** ISO 8601. */
  readonly startedAt: string
  /** ISO 8601, absolute; null for none. */
  readonly deadline: string | null
  readonly policy: PolicyData
  readonly members: readonly TicketMember[]
  /** Epoch milliseconds of this writing: a wall clock that went back restarts every proof. */
  readonly savedAt: number
}

/** Where tickets are kept: Keyv as it is, unstorage through `fromUnstorage`, or `fileTickets`. */
export interface TicketStore {
  /** What was stored under the key; `undefined` or null when there is nothing. */
  get(k: string): Promise<unknown>
  /** Stores plain JSON. Every ticket is read back, so a store that fails without a throw is noticed. */
  set(k: string, v: unknown): Promise<unknown>
  /** Forgets the key; no error when it is not there. */
  delete(k: string): Promise<unknown>
}

const ref = z.object({ pool: z.string(), member: z.string(), balancer: z.string().optional() })
const nullable = <T extends z.ZodType>(type: T): z.ZodNullable<T> => z.nullable(type)

const ticketSchema = z.object({
  v: z.literal(1),
  id: z.string().min(1),
  instance: z.string(),
  startedAt: z.iso.datetime(),
  deadline: nullable(z.iso.datetime()),
  policy: z.object({
    timeout: nullable(z.number()),
    onTimeout: z.enum(['fail', 'terminate', 'proceed']),
    hold: z.enum(['drain', 'maint']),
    escalateAfter: nullable(z.number()),
    settle: z.number(),
    until: z.enum(['idle', 'removed']),
    seal: nullable(z.boolean()),
    keepReady: z.number(),
    onMinimum: z.enum(['fail', 'wait']),
    onOverrule: z.enum(['reapply', 'fail']),
    onAbort: z.enum(['leave', 'restore']),
    ifUnsupported: z.enum(['fail', 'proceed']),
  }),
  members: z.array(
    z.object({
      ref,
      identity: nullable(z.string()),
      wasAdmin: nullable(z.enum(['ready', 'drain', 'maint'])),
      native: z.json(),
      changes: z.array(
        z.object({
          kind: z.enum(['hold', 'terminate', 'remove']),
          to: z.enum(['drain', 'maint']).optional(),
          state: z.enum(['intended', 'applied', 'unchanged']),
          at: z.string(),
        }),
      ),
      outcome: nullable(
        z.enum([
          'idle',
          'removed',
          'terminated',
          'proceeded',
          'timeout',
          'overruled',
          'refused',
          'aborted',
          'unreachable',
          'gone',
        ]),
      ),
      state: z.json(),
    }),
  ),
  savedAt: z.number(),
})

/**
 * Checks a ticket that came from outside.
 *
 * @throws `TICKET_INVALID` naming what is wrong
 */
export function parseTicket(value: unknown): Ticket {
  const result = ticketSchema.safeParse(value)
  if (result.success) return result.data as unknown as Ticket
  const issue = result.error.issues[0]
  const where = issue === undefined || issue.path.length === 0 ? 'it' : issue.path.join('.')
  throw new DrainableError(
    'TICKET_INVALID',
    `this is not a ticket of a drain (${where}: ${issue?.message ?? 'unreadable'}), pass what the store or onTicket was given`,
  )
}

/** Fields of a machine state that are moments on the drain's clock. */
const MOMENTS = new Set([
  'startedAt',
  'deadline',
  'effectiveSince',
  'confirmedAt',
  'notBefore',
  'terminateUntil',
  'quietFrom',
  'steadySince',
  'sampledAt',
  'askedAt',
  'at',
  'lostAt',
  'lateUntil',
  'sealedAt',
])

/** A machine state as plain JSON, its moments turned from the drain's clock into epoch milliseconds. */
export function freezeState(state: DrainState, wallOffset: number): Json {
  // Errors are no JSON, and a reading is as old as the ticket: both are read anew.
  return shift({ ...state, last: null, blind: null, ended: null, said: null }, wallOffset) as Json
}

/**
 * The machine state a ticket holds, on another clock.
 *
 * @param keepProof - keep the samples (a step goes on where the last one stopped) or start them anew (another process)
 */
export function thawState(
  frozen: Json,
  wallOffset: number,
  now: number,
  keepProof: boolean,
): DrainState {
  const shifted = shift(frozen, -wallOffset) as DrainState
  const base = keepProof ? shifted : { ...shifted, ...notInFuture(shifted, now) }
  const scopes = Object.fromEntries(
    Object.entries(base.scopes).map(([name, track]) => [
      name,
      keepProof
        ? { ...track, resumed: true }
        : { ...track, resumed: true, zeros: null, quietFrom: now, arrivalsAtEffect: null },
    ]),
  )
  const pending =
    base.pending === null
      ? null
      : {
          ...base.pending,
          state: 'lost' as const,
          lostAt: keepProof
            ? (base.pending.lostAt ?? now)
            : Math.min(base.pending.lostAt ?? now, now),
          lateUntil: keepProof ? base.pending.lateUntil : null,
        }
  return {
    ...base,
    scopes,
    pending,
    last: null,
    blind: null,
    ended: null,
    settled: false,
    said: null,
    // An ended member is judged anew: one that is still overruled is said to be so again, not drained again.
    holding: true,
    overruled: base.holding ? base.overruled : false,
    ...(keepProof ? {} : { verdict: null, effectiveSince: null }),
  }
}

/** After a wall clock that went back, what is past for sure would lie ahead, and hold everything up until then. */
function notInFuture(state: DrainState, now: number): Partial<DrainState> {
  return {
    startedAt: Math.min(state.startedAt, now),
    confirmedAt: Math.min(state.confirmedAt, now - 1),
    notBefore: Math.min(state.notBefore, now),
  }
}

function shift(value: unknown, by: number, key = ''): unknown {
  if (typeof value === 'number') return MOMENTS.has(key) ? value + by : value
  if (Array.isArray(value)) return value.map((item) => shift(item, by))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => item !== undefined)
      .map(([name, item]) => [
        name,
        name === 'native' || name === 'change' ? item : shift(item, by, name),
      ]),
  )
}
