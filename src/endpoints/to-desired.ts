import type { DesiredMember } from '../provider/desired.js'
import { ACTIONS, type Decision } from './map-endpoints.js'
import * as s from './shape.js'

/** Options of {@link toDesired}. */
export interface DesiredOptions {
  /** The pool of the members. */
  readonly pool: string
  /**
   * The name of a member to add. Default: address and port, `10.0.0.1:80`, `[2001:db8::1]:80`. HAProxy does not allow
   * brackets in a name: give a function for IPv6 there. If a member at another address has the name, the plan gives
   * another one that begins the same.
   */
  readonly name?: (decision: Decision) => string
}

const SUBJECT = 'toDesired()'

/**
 * Turns decisions into the desired members of one pool. It leaves out endpoints without an address.
 *
 * It passes weights on only if those of the serving endpoints differ: weights are shares, and if all are 1, the
 * balancer's own default applies.
 *
 * @example
 * ```ts
 * import { mapEndpoints, toDesired } from 'drainable/endpoints'
 *
 * const decisions = mapEndpoints([{ addresses: ['10.0.0.1'], port: 8080 }])
 * toDesired(decisions, { pool: 'web', name: (d) => `ctl-${d.address}:${d.port}` })
 * ```
 */
export function toDesired(
  decisions: readonly Decision[],
  options: DesiredOptions,
): DesiredMember[] {
  const poolName: s.Shape = (one) => s.filled(one, `a pool's name`)
  s.checkOptions(SUBJECT, options, { pool: poolName, name: s.optional(s.fn) })
  const { pool, name } = options
  s.check(SUBJECT, 'decisions', decisions, (found) =>
    s.each(found, 'a list of decisions', decision),
  )
  const weighted = decisions.some(({ action, weight }) => action === 'serve' && weight !== 1)
  return decisions
    .filter(({ address }) => address !== '')
    .map((decision) => {
      const { action, address, port, weight, reason, serving, ifAbsent } = decision
      return {
        pool,
        ...(name === undefined ? {} : { member: nameOf(decision, name) }),
        address,
        ...(port === undefined ? {} : { port }),
        state: action === 'exclude' ? 'absent' : action,
        ...(action === 'serve' && weighted ? { weight } : {}),
        reason,
        serving,
        ...(action === 'serve' && ifAbsent === 'skip' ? { ifAbsent } : {}),
      }
    })
}

/** As far as they are read here: `mapEndpoints` made them, or a caller who says so. */
function decision(found: unknown): s.Fault | undefined {
  if (!s.isObject(found)) return s.wrong(found, 'a decision')
  return (
    s.at('action', s.oneOf(found.action, ACTIONS)) ??
    s.at('address', s.text(found.address)) ??
    s.at('port', s.opt(found.port, s.port)) ??
    s.at('weight', s.amount(found.weight))
  )
}

function nameOf(decision: Decision, name: (decision: Decision) => string): string {
  const given: unknown = name(decision)
  if (typeof given === 'string' && given !== '') return given
  return s.refuse(SUBJECT, `name() of ${decision.address}`, given, `a member's name`)
}

/** The shape of one desired member of these pools. */
export function memberShape(pools: readonly string[]): s.Shape {
  const known = new Set<unknown>(pools)
  const choice = pools.length === 0 ? 'which is empty' : `which are ${pools.join(', ')}`
  return (found) => {
    if (!s.isObject(found)) return s.wrong(found, 'a desired member')
    const { pool } = found
    if (pool !== '' && known.has(pool)) return desired(found)
    const other = s.wrong(pool, `one of the option pools, ${choice}`)
    return s.at('pool', s.filled(pool, `a pool's name`) ?? other)
  }
}

/** The shape of desired members of these pools. */
export function desiredShape(pools: readonly string[]): s.Shape {
  return s.list('a list of desired members', memberShape(pools))
}

function desired(found: s.Loose): s.Fault | undefined {
  const { member, address, ifAbsent } = found
  const place = address === undefined ? 'an address, or a name in member' : 'an address'
  return (
    s.at('state', s.oneOf(found.state, STATES)) ??
    s.at('member', member === undefined ? undefined : s.filled(member, `a member's name`)) ??
    s.at(
      'address',
      address === undefined && member !== undefined ? undefined : s.filled(address, place),
    ) ??
    s.at('port', s.opt(found.port, s.port)) ??
    s.at('weight', s.opt(found.weight, s.amount)) ??
    s.at('serving', s.opt(found.serving, s.flag)) ??
    s.at('ifAbsent', ifAbsent === undefined ? undefined : s.oneOf(ifAbsent, IF_ABSENT)) ??
    s.at('reason', s.textOrNone(found.reason))
  )
}

const STATES: readonly DesiredMember['state'][] = ['serve', 'drain', 'absent']
const IF_ABSENT = ['add', 'skip']
