import type {
  AdminState,
  Capabilities,
  PoolReading,
  PresentReading,
  Reading,
  Snapshot,
} from '../provider/contract.js'
import { formatRef } from '../provider/member-ref.js'
import * as s from './shape.js'

/** Options of {@link planChanges}: the pools and members of a plan, and its limits. */
export interface PlanOptions {
  /**
   * The pools that `desired` describes, each completely: a member of these pools that it does not name has no
   * endpoint any more. Other pools are not touched, and `desired` must not name them. Keep naming the pool of an
   * emptied Service here, to tell it from a pool that is not yours.
   */
  readonly pools: readonly string[]
  /**
   * Which members of these pools can be changed; the others are reported as foreign and left alone. Decide by
   * something that only your members have, such as a prefix of their names: a virtual machine or a backup server in
   * the same pool has no endpoint either. `() => true` claims every member. A plan has no memory, so a member of
   * yours that an operator holds is made ready again if its endpoint serves.
   */
  readonly owns: (reading: Reading) => boolean
  /**
   * How many members of each pool must still take new work. Members count if they would serve: not down, weight above
   * 0, and their endpoint is not gone. One of which no check has passed yet (health `unknown`) does not count where a
   * member that works is to be held. A member that is gone is held anyway while another one counts, because it has
   * no capacity to lose. @default 1
   */
  readonly keepReady?: number
  /**
   * How to hold a member that does not answer any more. `maint` applies even if its effect on established work is not
   * known; if maint is known to cut, `drain` is used anyway. Default: `maint` if maint is known to keep established
   * work, else `drain`.
   */
  readonly gone?: 'maint' | 'drain'
  /**
   * Whether an empty desired list means that every member of its pool is gone. `keepReady` is then 0 unless it is
   * given. @default false
   */
  readonly allowEmpty?: boolean
  /** `false` while the cache behind `desired` has not seen its first complete list: nothing is planned. @default true */
  readonly synced?: boolean
  /**
   * Which drained members are proved idle: only those are removed. One snapshot of zeros proves nothing; a drain's
   * report does. Default: those in maint that every process itself reports as `released`.
   */
  readonly idle?: (reading: Reading) => boolean
  /**
   * What the product can do, from `describe()`: changes that it can't make are reported instead of planned, and the
   * effect of `maint` is known.
   */
  readonly capabilities?: Pick<Capabilities, 'ladder' | 'maint' | 'add' | 'remove'>
}

/** What one member is to become, before the floor is looked at. */
export interface Wish {
  readonly reading: PresentReading
  readonly state: 'serve' | 'drain' | 'gone'
  readonly reason: string
  /** Whether it may be taken out once it is idle. */
  readonly remove: boolean
}

export const SUBJECT = 'planChanges()'

export function checkPlanOptions(options: PlanOptions): void {
  const owns = 'a function that says which members may be changed'
  s.checkOptions(SUBJECT, options, {
    pools: s.list('the names of the pools that desired speaks for', s.text),
    owns: s.value(`${owns}; () => true claims every member of the pools`, isFunction),
    idle: s.optional(s.fn),
    keepReady: s.optional(s.value('a whole number from 0', (one) => s.isWhole(one, 0, Infinity))),
    gone: s.optional(s.word('maint', 'drain')),
    allowEmpty: s.nullable(s.flag),
    synced: s.nullable(s.flag),
    capabilities: s.optional(
      s.object<NonNullable<PlanOptions['capabilities']>>('capabilities, as describe() gives', {
        ladder: s.value('a list of admin states', Array.isArray),
        maint: s.optional(s.word(...EFFECTS)),
        add: s.nullable(s.flag),
        remove: s.nullable(s.flag),
      }),
    ),
  })
}

function isFunction(one: unknown): boolean {
  return typeof one === 'function'
}

/** Checks a snapshot as far as a plan reads it. It may come from a provider that the core never saw. */
export function checkSnapshot(snapshot: Snapshot): void {
  const pool = s.object<PoolReading>('a pool', { pool: s.text, balancer: s.nullable(s.text) })
  const shape = s.object<Snapshot>('a snapshot with readings and pools, as observe() gives it', {
    readings: s.list('a list of readings', reading),
    pools: s.list('a list of pools', pool),
  })
  s.check(SUBJECT, 'snapshot', snapshot, shape)
}

function reading(found: unknown): s.Fault | undefined {
  if (!s.isObject(found)) return s.wrong(found, 'a reading')
  const { present } = found
  return (
    s.at('ref', ref(found.ref)) ??
    s.at('present', s.flag(present)) ??
    (present === true ? presentReading(found) : undefined)
  )
}

function ref(found: unknown): s.Fault | undefined {
  if (!s.isObject(found)) return s.wrong(found, 'the names of a pool and a member')
  return (
    s.at('pool', s.text(found.pool)) ??
    s.at('member', s.text(found.member)) ??
    s.at('balancer', s.opt(found.balancer, s.text))
  )
}

function presentReading(found: s.Loose): s.Fault | undefined {
  const { inherited, maint } = found
  return (
    s.at('identity', s.text(found.identity)) ??
    s.at('own', s.oneOf(found.own, OWN)) ??
    s.at('serves', s.flag(found.serves)) ??
    s.at('health', s.oneOf(found.health, HEALTHS)) ??
    s.at('address', s.opt(found.address, s.text)) ??
    s.at('port', s.opt(found.port, listedPort)) ??
    s.at('weight', s.opt(found.weight, s.amount)) ??
    s.at('inherited', inherited === undefined ? undefined : s.oneOf(inherited, LEVELS)) ??
    s.at('maint', maint === undefined ? undefined : s.oneOf(maint, EFFECTS)) ??
    s.at('scopes', s.each(found.scopes, 'a list of processes', process))
  )
}

function listedPort(found: unknown): s.Fault | undefined {
  // HAProxy says 0 of a server that takes the client's port.
  if (s.isWhole(found, 0, 65_535)) return undefined
  return s.wrong(found, 'a port from 1 to 65535, or 0 for none')
}

function process(found: unknown): s.Fault | undefined {
  if (!s.isObject(found)) return s.wrong(found, 'a process')
  const { state, active, queued } = found
  const fault = s.at('state', s.oneOf(state, PROCESS))
  if (fault !== undefined || state !== 'read') return fault
  return s.at('active', s.amount(active)) ?? s.at('queued', s.amount(queued))
}

const LEVELS: readonly AdminState[] = ['ready', 'drain', 'maint']
const OWN: readonly PresentReading['own'][] = [...LEVELS, 'unknown']
const HEALTHS: readonly PresentReading['health'][] = ['up', 'down', 'unchecked', 'unknown']
const EFFECTS: readonly Capabilities['maint'][] = ['gentle', 'cuts', 'unknown', 'none']
const PROCESS = ['read', 'unread', 'ended']

/**
 * What a function of the caller said about a member. Only true and false count: the promise of an `async` function would
 * claim, or remove, every member.
 */
export function answer(name: 'owns' | 'idle', said: unknown, { ref }: Reading): boolean {
  if (typeof said === 'boolean') return said
  return s.refuse(SUBJECT, `${name}(${formatRef(ref)})`, said, 'true or false')
}
