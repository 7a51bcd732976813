import type { DesiredMember } from '../../provider/desired.js'
import { once } from '../../provider/once.js'
import { actionShape, type Decision } from '../decision.js'
import {
  amount,
  at,
  check,
  checkOptions,
  filled,
  fn,
  isObject,
  list,
  optional,
  port,
  refuse,
  text,
  wrong,
  type Fault,
} from '../shape.js'

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
  checkOptions(SUBJECT, options, optionShapes())
  const { pool, name } = options
  check(SUBJECT, 'decisions', decisions, decisionsShape())
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

const optionShapes = once(() => ({ pool: filled(`a pool's name`), name: optional(fn) }))

/** As far as they are read here: `mapEndpoints` made them, or a caller who says so. */
const decisionsShape = once(() => list('a list of decisions', decision))

function decision(found: unknown): Fault | undefined {
  if (!isObject(found)) return wrong(found, 'a decision')
  return (
    at('action', actionShape()(found.action)) ??
    at('address', text(found.address)) ??
    at('port', found.port === undefined ? undefined : port(found.port)) ??
    at('weight', amount(found.weight))
  )
}

function nameOf(decision: Decision, name: (decision: Decision) => string): string {
  const given: unknown = name(decision)
  if (typeof given === 'string' && given !== '') return given
  return refuse(SUBJECT, `name() of ${decision.address}`, given, `a member's name`)
}
