import { isIP } from '../../../provider/builtins.js'
import { canonicalAddress } from '../../../provider/address.js'
import type {
  AddressTarget,
  MemberRef,
  PresentReading,
  Snapshot,
} from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef, refKey } from '../../../provider/member-ref.js'
import { nearest, quote, quotedList } from '../../../provider/quote.js'
import { readingsOf } from './look.js'

/** The name of a target that matches nothing. */
export type Missing =
  | { readonly kind: 'member'; readonly ref: MemberRef }
  | { readonly kind: 'pool'; readonly pool: string }
  | { readonly kind: 'address'; readonly target: AddressTarget }

/**
 * The error for a target that matches nothing.
 *
 * @param seen - the look without it
 * @param all - a look at everything, if there is one, to suggest the name that was probably meant
 */
export function notFound(missing: Missing, seen: Snapshot, all?: Snapshot): DrainableError {
  const known = present(all ?? seen)
  switch (missing.kind) {
    case 'member': {
      const hints = readingsOf(seen).get(refKey(missing.ref))?.hints ?? []
      const why = hints.length > 0 ? hints.join('; ') : whyNoMember(missing.ref, seen, known)
      const words = `${formatRef(missing.ref)} was not found: ${why}`
      return new DrainableError('NOT_FOUND', words, { ref: missing.ref })
    }
    case 'pool': {
      const pools = poolsOf(known)
      return new DrainableError(
        'NOT_FOUND',
        `there is no pool ${quote(missing.pool)}${meantOr(missing.pool, pools, 'the pools')}`,
      )
    }
    case 'address':
      return new DrainableError('NOT_FOUND', whyNoAddress(missing.target, known))
  }
}

function whyNoMember(ref: MemberRef, seen: Snapshot, known: readonly PresentReading[]): string {
  const inPool = seen.pools.some((one) => one.pool === ref.pool && one.balancer === ref.balancer)
  const names = known.flatMap((one) => (one.ref.pool === ref.pool ? [one.ref.member] : []))
  if (inPool || names.length > 0)
    return `pool ${quote(ref.pool)} has no such member${meantOr(ref.member, names, 'its members')}`
  return `no such pool or member${meantOr(ref.pool, poolsOf(known), 'the pools')}`
}

function whyNoAddress({ address, port }: AddressTarget, known: readonly PresentReading[]): string {
  const named = port === undefined ? '' : ` port ${port}`
  const said = `no member has address ${quote(address)}${named}`
  const wished = canonicalAddress(address)
  const there = known.filter((one) => one.address !== undefined)
  const ports = there.flatMap((one) =>
    canonicalAddress(one.address ?? '') === wished ? [String(one.port ?? 'none')] : [],
  )
  if (ports.length > 0) return `${said}, its ports are ${quotedList(unique(ports))}`
  const resolved =
    isIP(wished) === 0 ? ', names are not resolved: give the address that the balancer has' : ''
  const addresses = unique(there.map((one) => one.address ?? ''))
  if (addresses.length === 0)
    return `${said}${resolved}, check the spelling or list what there is with select()`
  return `${said}${resolved}; members have ${quotedList(addresses, 5)}`
}

/** `, did you mean 'web1'?`, or the known names. BIG-IP names pools by path: `web` is meant for `/Common/web`. */
function meantOr(given: string, names: readonly string[], what: string): string {
  if (names.length === 0) return ', check the spelling'
  const paths = unique(names.filter((name) => name.endsWith(`/${given}`)))
  if (paths.length > 0) return `, did you mean ${quotedList(paths, 3)}?`
  const meant = nearest(given, names)
  return meant === undefined
    ? `, ${what} are ${quotedList(unique(names), 8)}`
    : `, did you mean '${quote(meant)}'?`
}

function present({ readings }: Snapshot): readonly PresentReading[] {
  return readings.filter((one) => one.present)
}

function poolsOf(known: readonly PresentReading[]): readonly string[] {
  return unique(known.map((one) => one.ref.pool))
}

function unique(names: readonly string[]): readonly string[] {
  return [...new Set(names.map((name) => quote(name)))]
}
