import * as z from 'zod'
import type { ErrorCode } from '../../provider/error.js'
import { epoch, moment } from './moments.js'
import { once } from '../../provider/once.js'

const text = once(() => z.string())
const name = once(() => text().min(1))
/** A name that ends up in messages, file names and commands. */
const plainName = once(() => name().regex(/^\P{Cc}*$/u, 'expected no control characters'))
const count = once(() => z.int().min(0))
/** At most ten years, as in a policy. */
const ms = once(() =>
  z
    .number()
    .min(0)
    .max(10 * 365 * 24 * 3_600_000),
)
const admin = once(() => z.enum(['ready', 'drain', 'maint']))

/** What names a member. */
export const refSchema = once(() =>
  z.strictObject({
    pool: plainName(),
    member: plainName(),
    balancer: plainName().exactOptional(),
  }),
)

/** What a drain was pointed at, of a balancer that was not read yet. */
const targetSchema = once(() =>
  z.union([
    refSchema(),
    z.array(refSchema()).min(1),
    z.strictObject({ address: plainName(), port: z.int().min(1).max(65_535).exactOptional() }),
    z.strictObject({ pool: plainName() }),
  ]),
)

/** The plain data of a policy, durations in milliseconds; null stands for none. */
export const policyDataSchema = once(() =>
  z.strictObject({
    timeout: ms().nullable(),
    onTimeout: z.enum(['fail', 'terminate', 'proceed']),
    hold: z.enum(['drain', 'maint']),
    escalateAfter: ms().nullable(),
    settle: ms(),
    until: z.enum(['idle', 'removed']),
    seal: z.boolean().nullable(),
    keepReady: count(),
    onMinimum: z.enum(['fail', 'wait']),
    onOverrule: z.enum(['reapply', 'fail']),
    onAbort: z.enum(['leave', 'restore']),
    onUnreachable: z.enum(['wait', 'fail']).default('fail'),
    ifUnsupported: z.enum(['fail', 'proceed']),
  }),
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

/** One change of one member. */
const changeSchema = once(() =>
  z.strictObject({
    kind: z.enum(['hold', 'restore', 'terminate', 'remove']),
    /** The state it leads to; of a hold or a restore. */
    to: admin().exactOptional(),
    /** `unchanged`: it was so before us, so an undo leaves it alone. `intended`: not known yet. */
    state: z.enum(['intended', 'applied', 'unchanged']),
    /** ISO 8601. */
    at: z.iso.datetime(),
  }),
)

const identity = once(() => text().exactOptional())
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
      native: z.json().exactOptional(),
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

const scopeSchema = once(() =>
  z.strictObject({
    scope: text(),
    incarnation: text(),
    state: z.enum(['read', 'unread', 'ended']),
    sampledAt: moment(),
    active: count(),
    oldest: ms().exactOptional(),
    queued: count(),
    mayHide: z.boolean().exactOptional(),
    pooled: z.number().exactOptional(),
    arrivals: count().exactOptional(),
    countersFrom: text().exactOptional(),
    inForce: z.boolean().exactOptional(),
    admin: z.enum(['ready', 'drain', 'maint', 'unknown']).exactOptional(),
    open: z.boolean().exactOptional(),
    lived: z.number().exactOptional(),
    released: z.boolean().exactOptional(),
    note: z.string().exactOptional(),
    old: z.boolean().exactOptional(),
  }),
)

const trackSchema = once(() =>
  z.strictObject({
    last: scopeSchema(),
    read: scopeSchema().nullable(),
    quietFrom: moment(),
    livedFrom: z.number().nullable(),
    stalled: ms(),
    zeros: z.strictObject({ first: scopeSchema(), last: scopeSchema() }).nullable(),
    arrivalsAtEffect: count().nullable(),
    steadySince: moment(),
  }),
)

const proofSchema = once(() =>
  z.strictObject({
    arrivals: z.enum(['unchanged', 'unknown']),
    quietSince: z.iso.datetime(),
    samples: z.array(z.strictObject({ at: z.iso.datetime(), scopes: z.array(scopeSchema()) })),
    text: z.string(),
  }),
)

/** Names with a value: no name can be mistaken for a property of objects. */
const marks = once(() =>
  z.array(
    z.strictObject({
      scope: text(),
      incarnation: text(),
      arrivals: count().nullable(),
      countersFrom: text().exactOptional(),
    }),
  ),
)
const incarnations = once(() => z.array(z.tuple([text(), text()])))

/** The form of {@link frozenSchema}: counted up when it changes. */
export const STATE_FORM = 4

/** The machine's state between two processes; moments in epoch milliseconds. */
export const frozenSchema = once(() =>
  z.strictObject({
    /** Of this form: another one is refused, never guessed at. */
    v: z.literal(STATE_FORM),
    phase: z.enum(['active', 'draining', 'idle', 'removed']),
    startedAt: moment(),
    hold: z.strictObject({
      wish: z.enum(['none', 'drain', 'maint']),
      confirmed: z.enum(['none', 'drain', 'maint']),
      /** Announced, or sent and not answered: it may be carried out. */
      intended: sentSchema().nullable(),
      late: z.array(
        z.strictObject({
          change: sentSchema(),
          lostAt: moment(),
          until: moment().nullable(),
          lackedAt: moment().nullable(),
          before: admin().exactOptional(),
          shared: z.boolean().exactOptional(),
          refused: z.boolean().exactOptional(),
        }),
      ),
      confirmedAt: moment(),
      notBefore: moment(),
      losses: count(),
      refusals: count(),
      incarnations: incarnations().nullable(),
      overrules: count(),
      overruled: z.boolean(),
      escalated: z.boolean(),
      floor: z.enum(['unasked', 'granted', 'kept']),
      yieldAt: moment().nullable(),
      atMinimum: z.boolean(),
      /** What was refused last: one that is not retryable is not asked for again. */
      refusal: z.strictObject({ change: sentSchema(), error: errorSchema() }).nullable(),
    }),
    proof: z.strictObject({
      scopes: z.array(trackSchema()),
      ended: count(),
      effectiveSince: moment().nullable(),
      inForce: z.boolean(),
      verdict: z
        .strictObject({
          at: moment(),
          proof: proofSchema(),
          scopes: marks(),
          sealedAt: moment().nullable(),
        })
        .nullable(),
      proof: proofSchema().nullable(),
      sealed: z.boolean(),
      unverified: z.string().nullable(),
      sealFailures: count(),
      lost: z.array(
        z.strictObject({
          scope: text(),
          active: count(),
          at: z.iso.datetime(),
          note: text().exactOptional(),
        }),
      ),
      isForeign: z.boolean(),
    }),
    /** The undo of a hold that left too few serving: what follows it, and why. */
    yielding: z.strictObject({ then: z.enum(['refuse', 'wait']), because: z.string() }).nullable(),
    vanished: z.strictObject({ identity: text().nullable(), since: moment() }).nullable(),
    holding: z.boolean(),
    terminated: count(),
    terminatedAtMost: z.boolean(),
    cutting: count().optional(),
    terminateUntil: moment().nullable(),
  }),
)

const memberSchema = once(() =>
  z.strictObject({
    ref: refSchema(),
    /** Address, port and id, as found before our first change; null: not read yet. */
    identity: text().nullable(),
    /** The own state an undo goes back to; null: not known. */
    wasAdmin: admin().nullable(),
    /** Whether it would have got new work then. */
    served: z.boolean(),
    /** What the adapter needs to restore; its own words. */
    native: z.json(),
    changes: z.array(changeSchema()),
    outcome: outcomeSchema().nullable(),
    /** The machine's state. */
    state: frozenSchema(),
  }),
)

/** Who wrote a ticket, so that others can tell whether that process still lives. */
const ownerSchema = once(() =>
  z.strictObject({
    /** The caller's own word for who drains; null for none. */
    name: text().nullable(),
    host: text(),
    /** Null where no process goes on with the drain between two calls (`stepDrain`). */
    pid: z.int().min(0).nullable(),
    /** Which boot of the machine. */
    boot: text(),
    /** When the process began, in the kernel's ticks since boot; null where the machine does not tell. */
    started: text().nullable(),
    /** Where the pid counts: containers have numbers of their own; null where the machine does not tell. */
    space: text().nullable(),
  }),
)

/** The ticket of one drain. */
const drainTicketSchema = once(() =>
  z.strictObject({
    v: z.literal(1),
    id: z.string().regex(/^[\w.:@-]{1,200}$/, 'expected 1 to 200 letters, digits or _ . : @ -'),
    /** Which balancer: a resume on another one is refused. */
    instance: text(),
    /** One entry a balancer; `target`: it was not read yet, so its members are still to be found. */
    parts: z
      .array(
        z.strictObject({
          balancer: name().nullable(),
          name: text(),
          instance: text(),
          target: targetSchema().exactOptional(),
        }),
      )
      .min(1),
    /** ISO 8601. */
    startedAt: z.iso.datetime(),
    /** ISO 8601, absolute; null for none. */
    deadline: z.iso.datetime().nullable(),
    policy: policyDataSchema(),
    /** When it was written: wall time in epoch milliseconds, and seconds of uptime of which boot. */
    saved: z.strictObject({ wall: epoch(), boot: text(), uptime: ms() }),
    /** Who goes on with the drain. */
    owner: ownerSchema(),
    /** The lease under which it was written, with the fencing number of its holder: a lower one never writes over a higher. */
    lease: z.strictObject({ name: text(), fence: z.int().min(1) }).exactOptional(),
    members: z.array(memberSchema()),
  }),
)

/** How far a roll is with one server. */
const rolledSchema = once(() =>
  z.strictObject({
    /** Null where the balancer tells none. */
    address: text().nullable(),
    refs: z.array(refSchema()).min(1),
    /**
     * `acting`: the caller's function was called, and it is not known how far it came. `acted`: it has
     * ended well, and the server is to be opened. `postponed`: it was busy for too long, was put back, and
     * is tried once more at the end.
     */
    state: z.enum(['waiting', 'draining', 'acting', 'acted', 'done', 'failed', 'postponed']),
    /** How often the caller's function was called. */
    attempt: count(),
    error: errorSchema().nullable(),
    /** What the drain of this server says; null where nothing of ours is left on it. */
    drain: drainTicketSchema().nullable(),
  }),
)

/** What a roll was asked for, durations in milliseconds; null stands for none. */
const rollPlanSchema = once(() =>
  z.strictObject({
    canary: count(),
    maxUnavailable: z.int().min(1),
    /** The roll stops when more than that many servers have failed; null: never. */
    maxFailed: count().nullable(),
    postpone: z.boolean(),
    health: z.strictObject({
      by: z.enum(['nobody', 'balancer', 'caller']),
      limit: ms().nullable(),
    }),
  }),
)

/** A roll over several servers, in its ticket. */
const rollSchema = once(() =>
  z.strictObject({
    /** Of this form: another one is refused, never guessed at. */
    v: z.literal(1),
    plan: rollPlanSchema(),
    servers: z.array(rolledSchema()).min(1),
  }),
)

/** The ticket of a drain, or of a roll: that has its drains in `roll`, and no members of its own. This schema is its type. */
export const ticketSchema = once(() =>
  drainTicketSchema().extend({ roll: rollSchema().exactOptional() }),
)
