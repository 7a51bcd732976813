import type { DesiredMember } from '../../provider/desired.js'
import { A_PORT, AN_AMOUNT, checkOptions, isAmount, isObject, isPort, refuse } from '../check.js'
import type { Decision } from '../decision.js'

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
  checkOptions(SUBJECT, options, ['pool', 'name'])
  const { pool, name } = options
  if (typeof pool !== 'string' || pool === '') refuse(SUBJECT, 'pool', pool, `a pool's name`)
  if (name !== undefined && typeof name !== 'function') refuse(SUBJECT, 'name', name, 'a function')
  const given: unknown = decisions
  if (!Array.isArray(given)) refuse(SUBJECT, 'decisions', given, 'a list of decisions')
  for (let i = 0; i < given.length; i++) checkDecision(given[i], i)
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

/** As far as it is read here: `mapEndpoints` made it, or a caller who says so. */
function checkDecision(one: unknown, i: number): void {
  if (!isObject(one)) refuse(SUBJECT, `decisions[${i}]`, one, 'a decision')
  const { action, address, port, weight } = one
  if (action !== 'serve' && action !== 'drain' && action !== 'exclude')
    refuse(SUBJECT, `decisions[${i}].action`, action, `'serve', 'drain' or 'exclude'`)
  if (typeof address !== 'string') refuse(SUBJECT, `decisions[${i}].address`, address, 'a text')
  if (port !== undefined && !isPort(port)) refuse(SUBJECT, `decisions[${i}].port`, port, A_PORT)
  if (!isAmount(weight)) refuse(SUBJECT, `decisions[${i}].weight`, weight, AN_AMOUNT)
}

function nameOf(decision: Decision, name: (decision: Decision) => string): string {
  const given: unknown = name(decision)
  if (typeof given === 'string' && given !== '') return given
  return refuse(SUBJECT, `name() of ${decision.address}`, given, `a member's name`)
}
