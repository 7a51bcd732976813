import type { DesiredMember } from '../../core/desired.js'
import { checkOptions, refuse } from '../check.js'
import type { Decision } from '../decision.js'

/** Where decisions go. */
export interface DesiredOptions {
  /** The pool they are for. */
  readonly pool: string
  /**
   * How a member is to be named where one is added. Default: address and port, `10.0.0.1:80`,
   * `[2001:db8::1]:80`. HAProxy takes no brackets in a name: give one for IPv6 there.
   */
  readonly name?: (decision: Decision) => string
}

const SUBJECT = 'toDesired()'

/**
 * Decisions as what the members of one pool should be. An endpoint without an address is left out.
 *
 * Weights are passed on only where the serving ones differ: they are shares, and when all are 1
 * the balancer's own default stands.
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
  const given: unknown = decisions
  if (!Array.isArray(given)) refuse(SUBJECT, 'decisions', given, 'a list of decisions')
  const weighted = decisions.some(({ action, weight }) => action === 'serve' && weight !== 1)
  return decisions
    .filter(({ address }) => address !== '')
    .map((decision) => {
      const { action, address, port, weight, reason, serving, ifAbsent } = decision
      return {
        pool,
        ...(name === undefined ? {} : { member: name(decision) }),
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
