import { isIP } from '../provider/builtins.js'
import type { MemberRef } from '../provider/contract.js'
import { DrainableError } from '../provider/error.js'
import { quote } from '../provider/quote.js'
import type { Target } from '../core/calls/target.js'

const FORMS =
  "'pool/member', 'pool/' for a whole pool, or an address such as 10.0.0.7 or 10.0.0.7:8080"

/** What a target can be beside the usual. */
export interface TargetRules {
  /** Whether a name without a slash is a pool. */
  readonly poolAlone?: boolean
  /** The names of the balancers, where there are several. */
  readonly balancers?: readonly string[]
}

/**
 * Reads what a verb works on.
 *
 * A pool and a member are parted at the last slash: `web/web1`, `/Common/web/10.0.0.1:80`. Where the member's own name
 * begins with a slash, at the first double slash: `web//Common/10.0.0.1:80`, `web//run/app.sock`.
 *
 * With several balancers, the name of one and a colon can stand before it: `east:web/web1`.
 *
 * @param texts - one target, or several members
 * @param rules - what more is understood
 * @throws `INVALID_OPTIONS`
 */
export function parseTargets(texts: readonly string[], rules: TargetRules = {}): Target {
  const targets = texts.map((text) => parseOne(text, rules))
  const [only] = targets
  if (only === undefined) throw wrong('no target is given')
  if (targets.length === 1) return only
  return targets.map((target, i) => {
    if ('pool' in target && 'member' in target) return target
    throw wrong(
      `'${quote(texts[i] ?? '', 80)}' is no member, and beside another target only a member can stand`,
    )
  })
}

type One = Exclude<Target, readonly MemberRef[]>

function parseOne(text: string, { poolAlone = false, balancers = [] }: TargetRules): One {
  const balancer = balancers.find((name) => text.startsWith(`${name}:`))
  if (balancer !== undefined)
    return { ...parseOne(text.slice(balancer.length + 1), { poolAlone }), balancer }
  const address = parseAddress(text)
  if (address !== undefined) return address
  const double = text.indexOf('//')
  const slash = double > 0 ? double : text.lastIndexOf('/')
  if (slash < 0 && poolAlone && text !== '') return { pool: text }
  if (slash <= 0) throw wrong(`'${quote(text, 80)}' is no member, pool or address`)
  const pool = text.slice(0, slash)
  const member = text.slice(slash + 1)
  return member === '' ? { pool } : { pool, member }
}

function parseAddress(text: string): One | undefined {
  if (isIP(text) !== 0) return { address: text }
  const [, v6, v4, port = ''] = /^(?:\[([^\]]+)\]|([^:/]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  const address = v6 ?? v4 ?? ''
  if (isIP(address) === 0) return undefined
  if (port === '') return { address }
  if (Number(port) < 1 || Number(port) > 65_535)
    throw wrong(`'${quote(text, 80)}' has no port from 1 to 65535`)
  return { address, port: Number(port) }
}

function wrong(why: string): DrainableError {
  return new DrainableError('INVALID_OPTIONS', `the target: ${why}; expected ${FORMS}`)
}
