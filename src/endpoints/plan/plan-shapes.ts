import type { PoolReading, Reading, Snapshot } from '../../provider/contract.js'
import { formatRef } from '../../provider/member-ref.js'
import { once } from '../../provider/once.js'
import {
  amount,
  at,
  both,
  filled,
  flag,
  fn,
  isObject,
  isWhole,
  list,
  nullable,
  object,
  optional,
  port,
  refuse,
  text,
  textOrNone,
  value,
  when,
  word,
  wrong,
  type Fault,
  type Loose,
  type Shape,
} from '../shape.js'
import type { PlanOptions } from './plan.js'

export const SUBJECT = 'planChanges()'

/** The shapes of a plan's options. */
export const planOptionShapes = once(() => {
  const owns = 'a function that says which members may be changed'
  return {
    pools: list('the names of the pools that desired speaks for', text),
    owns: value(`${owns}; () => true claims every member of the pools`, isFunction),
    idle: optional(fn),
    keepReady: optional(value('a whole number from 0', (one) => isWhole(one, 0, Infinity))),
    gone: optional(word('maint', 'drain')),
    allowEmpty: nullable(flag),
    synced: nullable(flag),
    capabilities: optional(
      object<NonNullable<PlanOptions['capabilities']>>('capabilities, as describe() gives', {
        ladder: value('a list of admin states', Array.isArray),
        maint: optional(effect()),
        add: nullable(flag),
        remove: nullable(flag),
      }),
    ),
  }
})

/** The shape of one desired member of these pools. */
export function memberShape(pools: readonly string[]): Shape {
  const known = new Set<unknown>(pools)
  const choice = pools.length === 0 ? 'which is empty' : `which are ${pools.join(', ')}`
  const name = both(
    filled(`a pool's name`),
    value(`one of the option pools, ${choice}`, (one) => known.has(one)),
  )
  return (found) => desired(found, name)
}

/** The shape of desired members of these pools. */
export function desiredShape(pools: readonly string[]): Shape {
  return list('a list of desired members', memberShape(pools))
}

function desired(found: unknown, poolName: Shape): Fault | undefined {
  if (!isObject(found)) return wrong(found, 'a desired member')
  const { member, address, port: its, weight, serving, ifAbsent } = found
  return (
    at('pool', poolName(found.pool)) ??
    at('state', states()(found.state)) ??
    at('member', member === undefined ? undefined : memberName()(member)) ??
    at('address', address === undefined ? undefined : anAddress()(address)) ??
    at('address', member === undefined ? anAddressOrName()(address) : undefined) ??
    at('port', its === undefined ? undefined : port(its)) ??
    at('weight', weight === undefined ? undefined : amount(weight)) ??
    at('serving', serving === undefined ? undefined : flag(serving)) ??
    at('ifAbsent', ifAbsent === undefined ? undefined : ifAbsents()(ifAbsent)) ??
    at('reason', textOrNone(found.reason))
  )
}

const memberName = once(() => filled(`a member's name`))
const anAddress = once(() => filled('an address'))
const anAddressOrName = once(() => filled('an address, or a name in member'))
const states = once(() => word('serve', 'drain', 'absent'))
const ifAbsents = once(() => word('add', 'skip'))

/** The shape of a snapshot as far as a plan reads it. It may come from a provider that the core never saw. */
export const snapshotShape = once(() =>
  object<Snapshot>('a snapshot with readings and pools, as observe() gives it', {
    readings: list('a list of readings', reading),
    pools: list(
      'a list of pools',
      object<PoolReading>('a pool', { pool: text, balancer: nullable(text) }),
    ),
  }),
)

function reading(found: unknown): Fault | undefined {
  if (!isObject(found)) return wrong(found, 'a reading')
  const { present } = found
  return (
    at('ref', ref(found.ref)) ??
    at('present', flag(present)) ??
    (present === true ? presentReading(found) : undefined)
  )
}

function ref(found: unknown): Fault | undefined {
  if (!isObject(found)) return wrong(found, 'the names of a pool and a member')
  const { balancer } = found
  return (
    at('pool', text(found.pool)) ??
    at('member', text(found.member)) ??
    at('balancer', balancer === undefined ? undefined : text(balancer))
  )
}

function presentReading(found: Loose): Fault | undefined {
  const { address, port: its, weight, inherited, maint } = found
  return (
    at('identity', text(found.identity)) ??
    at('own', owns()(found.own)) ??
    at('serves', flag(found.serves)) ??
    at('health', healths()(found.health)) ??
    at('address', address === undefined ? undefined : text(address)) ??
    at('port', its === undefined ? undefined : listedPort(its)) ??
    at('weight', weight === undefined ? undefined : amount(weight)) ??
    at('inherited', inherited === undefined ? undefined : inheritable()(inherited)) ??
    at('maint', maint === undefined ? undefined : effect()(maint)) ??
    at('scopes', scopes()(found.scopes))
  )
}

function listedPort(found: unknown): Fault | undefined {
  // HAProxy says 0 of a server that takes the client's port.
  if (isWhole(found, 0, 65_535)) return undefined
  return wrong(found, 'a port from 1 to 65535, or 0 for none')
}

const owns = once(() => word('ready', 'drain', 'maint', 'unknown'))
const inheritable = once(() => word('ready', 'drain', 'maint'))
const healths = once(() => word('up', 'down', 'unchecked', 'unknown'))
const effect = once(() => word('gentle', 'cuts', 'unknown', 'none'))

const scopes = once(() => {
  const counts = object('a process', { active: amount, queued: amount })
  const scope = object('a process', { state: word('read', 'unread', 'ended') })
  return list(
    'a list of processes',
    both(
      scope,
      when(({ state }) => state === 'read', counts),
    ),
  )
})

function isFunction(one: unknown): boolean {
  return typeof one === 'function'
}

/**
 * What a function of the caller said about a member. Only true and false count: the promise of an `async` function would
 * claim, or remove, every member.
 */
export function answer(name: 'owns' | 'idle', said: unknown, { ref }: Reading): boolean {
  if (typeof said === 'boolean') return said
  return refuse(SUBJECT, `${name}(${formatRef(ref)})`, said, 'true or false')
}
