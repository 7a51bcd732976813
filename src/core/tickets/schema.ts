import * as z from 'zod/mini'
import type { ErrorCode } from '../../provider/error.js'
import { once } from '../../provider/options.js'
import { matching, whole } from '../../provider/option-schemas.js'
import { keptShape, ms } from './options-table.js'

const text = once(() => z.string())
const name = once(() => text().check(z.minLength(1)))
/** A name that ends up in messages, file names and commands. */
const plainName = once(() => name().check(z.regex(/^\P{Cc}*$/u, 'expected no control characters')))
const count = once(() => whole(0))
/** As `toISOString()` writes it. */
const time = once(() =>
  matching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/, TIME).check(z.refine(isMoment, TIME)),
)
const TIME = 'expected a time of ISO 8601'

/** A date that is not there is read as another one: 30 February as 2 March. */
function isMoment(text: string): boolean {
  const at = new Date(text)
  return !Number.isNaN(at.getTime()) && at.toISOString().slice(0, 19) === text.slice(0, 19)
}

/** `z.json()` and `z.tuple()` bring six kinds of schema more into every program that drains. */
const json = once(() =>
  z.custom<z.core.util.JSONType>((value) => isJson(value), 'expected plain JSON'),
)
const pair = once(() => z.custom<[string, string]>(isPair, 'expected a name and its value'))

/** Deeper than this is nothing that an adapter keeps, or refers to itself. */
const DEEPEST = 100

function isJson(value: unknown, depth = 0): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  const isPlain = Object.prototype.toString.call(value) === '[object Object]'
  if ((!Array.isArray(value) && !isPlain) || depth === DEEPEST) return false
  return Object.values(value as object).every((one) => isJson(one, depth + 1))
}

function isPair(value: unknown): boolean {
  return Array.isArray(value) && value.length === 2 && value.every((one) => typeof one === 'string')
}

const admin = once(() => z.enum(['ready', 'drain', 'maint']))

/** What names a member. */
export const refSchema = once(() =>
  z.strictObject({
    pool: plainName(),
    member: plainName(),
    balancer: z.exactOptional(plainName()),
  }),
)

/** What a drain was pointed at, of a balancer that was not read yet. */
const targetSchema = once(() =>
  z.union([
    refSchema(),
    z.array(refSchema()).check(z.minLength(1)),
    z.strictObject({ address: plainName(), port: z.exactOptional(whole(1, 65_535)) }),
    z.strictObject({ pool: plainName() }),
  ]),
)

/** How the drain of a member ended. */
export const outcomeSchema = once(() =>
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
    'restored',
  ]),
)

const identity = once(() => z.exactOptional(text()))
const sentSchema = once(() =>
  z.discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('hold'),
      ref: refSchema(),
      identity: identity(),
      to: z.enum(['drain', 'maint']),
    }),
    z.strictObject({
      kind: z.literal('restore'),
      ref: refSchema(),
      identity: identity(),
      expect: admin(),
      to: admin(),
      native: z.exactOptional(json()),
    }),
    z.strictObject({ kind: z.literal('terminate'), ref: refSchema(), identity: identity() }),
    z.strictObject({ kind: z.literal('remove'), ref: refSchema(), identity: identity() }),
  ]),
)

const CODES = [
  'INVALID_OPTIONS',
  'UNSUPPORTED',
  'UNREACHABLE',
  'CALL_TIMEOUT',
  'CONNECTION_LOST',
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'MALFORMED_REPLY',
  'PROVIDER_FAILED',
  'NOT_FOUND',
  'REJECTED',
  'CONFLICT',
  'DRAIN_TIMEOUT',
  'DRAIN_OVERRULED',
  'POOL_AT_MINIMUM',
  'MEMBER_GONE',
  'IDLE_LOST',
  'HEALTH_TIMEOUT',
  'ACTION_FAILED',
  'ROLL_STOPPED',
  'TICKET_INVALID',
  'NOT_LEADER',
] as const satisfies readonly ErrorCode[]

/** An error without its causes, which may be anything. */
const errorSchema = once(() =>
  z.strictObject({
    code: z.enum(CODES),
    message: text(),
    retryable: z.boolean(),
  }),
)

/** Names with a value: no name can be mistaken for a property of objects. */
const incarnations = once(() => z.array(pair()))
const states = once(() => z.array(z.enum(['drain', 'maint', 'ready'])))
const level = once(() => z.enum(['none', 'drain', 'maint']))

/** One member of a drain: what was found, what we changed, and how far its drain is. No proof: that is read anew. */
const memberSchema = once(() =>
  z.strictObject({
    ref: refSchema(),
    /** As found before our first change: where an undo goes. Null: not read yet. */
    found: z.nullable(
      z.strictObject({
        identity: text(),
        own: z.enum(['ready', 'drain', 'maint', 'unknown']),
        serves: z.boolean(),
        /** What the adapter needs to restore; its own words. */
        native: json(),
      }),
    ),
    /** The state that our newest change led to; null: none of ours is in place. */
    set: z.nullable(admin()),
    /** States that we had set in processes that are gone. */
    earlier: states(),
    /** States that a change of ours may have led to, and nobody can tell. */
    doubted: states(),
    /** A change that is about to be sent, or was sent and has no answer. */
    intended: z.nullable(sentSchema()),
    /** Changes whose answer was lost: they may still be carried out. */
    late: z.array(sentSchema()),
    /** The processes that have our state; null: none. */
    told: z.nullable(incarnations()),
    /** Every process that could hold its work, with the work that it had. */
    processes: z.array(z.strictObject({ name: text(), incarnation: text(), work: count() })),
    phase: z.enum(['active', 'draining', 'idle', 'removed']),
    startedAt: time(),
    wish: level(),
    confirmed: level(),
    held: z.boolean(),
    holding: z.boolean(),
    floor: z.enum(['unasked', 'reserved', 'granted', 'kept']),
    atMinimum: z.boolean(),
    overrules: count(),
    escalated: z.boolean(),
    terminated: count(),
    terminatedAtMost: z.boolean(),
    lost: z.array(
      z.strictObject({
        scope: text(),
        active: count(),
        at: time(),
        note: z.exactOptional(text()),
      }),
    ),
    outcome: z.nullable(outcomeSchema()),
  }),
)

/** Who wrote a ticket, so that others can tell whether that process still lives. */
const ownerSchema = once(() =>
  z.strictObject({
    /** The caller's own word for who drains; null for none. */
    name: z.nullable(text()),
    host: text(),
    /** Null where no process goes on with the drain between two calls (`stepDrain`). */
    pid: z.nullable(whole(0)),
    /** Which boot of the machine. */
    boot: text(),
    /** When the process began, in the kernel's ticks since boot; null where the machine does not tell. */
    started: z.nullable(text()),
    /** Where the pid counts: containers have numbers of their own; null where the machine does not tell. */
    space: z.nullable(text()),
  }),
)

/** The ticket of one drain. */
const drainTicketSchema = once(() =>
  z.strictObject({
    v: z.literal(1),
    id: matching(/^[\w.:@-]{1,200}$/, 'expected 1 to 200 letters, digits or _ . : @ -'),
    /** Which balancer: a resume on another one is refused. */
    instance: text(),
    /** One entry a balancer; `target`: it was not read yet, so its members are still to be found. */
    parts: z
      .array(
        z.strictObject({
          balancer: z.nullable(name()),
          name: text(),
          instance: text(),
          target: z.exactOptional(targetSchema()),
        }),
      )
      .check(z.minLength(1)),
    /** ISO 8601. */
    startedAt: time(),
    /** ISO 8601, absolute; null for none. */
    deadline: z.nullable(time()),
    policy: z.strictObject(keptShape()),
    /** Who goes on with the drain. */
    owner: ownerSchema(),
    /** The lease under which it was written, with the fencing number of its holder: a lower one never writes over a higher. */
    lease: z.exactOptional(z.strictObject({ name: text(), fence: whole(1) })),
    members: z.array(memberSchema()),
  }),
)

/** How far a roll is with one server. */
const rolledSchema = once(() =>
  z.strictObject({
    /** Null where the balancer tells none. */
    address: z.nullable(text()),
    refs: z.array(refSchema()).check(z.minLength(1)),
    /**
     * `acting`: the caller's function was called, and it is not known how far it came. `acted`: it has
     * ended well, and the server is to be opened. `postponed`: it was busy for too long, was put back, and
     * is tried once more at the end.
     */
    state: z.enum(['waiting', 'draining', 'acting', 'acted', 'done', 'failed', 'postponed']),
    /** How often the caller's function was called. */
    attempt: count(),
    error: z.nullable(errorSchema()),
    /** What the drain of this server says; null where nothing of ours is left on it. */
    drain: z.nullable(drainTicketSchema()),
    /** Its members that are not the roll's to open, once it is done. */
    leftAsFound: z.array(refSchema()),
  }),
)

/** What a roll was asked for, durations in milliseconds; null stands for none. */
const rollPlanSchema = once(() =>
  z.strictObject({
    canary: count(),
    maxUnavailable: whole(1),
    /** The roll stops when more than that many servers have failed; null: never. */
    maxFailed: z.nullable(count()),
    postpone: z.boolean(),
    health: z.strictObject({
      by: z.enum(['nobody', 'balancer', 'caller']),
      limit: z.nullable(ms()),
    }),
  }),
)

/** A roll over several servers, in its ticket. */
const rollSchema = once(() =>
  z.strictObject({
    /** Of this form: another one is refused, never guessed at. */
    v: z.literal(1),
    plan: rollPlanSchema(),
    servers: z.array(rolledSchema()).check(z.minLength(1)),
  }),
)

/** The ticket of a drain, or of a roll: that has its drains in `roll`, and no members of its own. This schema is its type. */
export const ticketSchema = once(() =>
  z.extend(drainTicketSchema(), { roll: z.exactOptional(rollSchema()) }),
)
