import type { AbsentReading, LoadScope, PresentReading } from '../../../provider/contract.js'
import { printable, quote } from '../../../provider/quote.js'

/**
 * Words of a product for a person, made printable where they come in: whatever becomes of them later
 * (an event, a ticket, a reason, a log) moves no terminal and breaks no line.
 *
 * Names are only made printable, words are bounded too: a name that is cut could be another one's. Who a
 * member is (`ref`, `identity`) is left as it came, because the provider compares it.
 */

/** Longest note or hint, in characters. */
const MOST = 1_000

/** The same scope where nothing is wrong with its words. */
export function printableScope(given: LoadScope): LoadScope {
  const { scope, incarnation, note, countersFrom } = given
  const safe = {
    scope: printableName(scope),
    // One that was not read need not say it.
    incarnation: isText(incarnation) ? printable(incarnation) : '',
    ...(note === undefined ? {} : { note: quote(note, MOST) }),
    ...(countersFrom === undefined ? {} : { countersFrom: printable(countersFrom) }),
  }
  const same =
    safe.scope === scope &&
    safe.incarnation === incarnation &&
    safe.note === note &&
    safe.countersFrom === countersFrom
  return same ? given : { ...given, ...safe }
}

/** The name of a process. */
export function printableName(name: string): string {
  return name.trim() === '' ? 'a process without a name' : printable(name)
}

/** The same reading where nothing is wrong with its words. */
export function printableReading(reading: PresentReading): PresentReading {
  const { address, unverified, hints, setBy } = reading
  const safe = {
    ...(isText(address) ? { address: quote(address) } : {}),
    ...(unverified === undefined ? {} : { unverified: doubt(unverified) }),
    ...(isText(setBy) ? { setBy: quote(setBy, MOST) } : {}),
    ...(hints === undefined ? {} : { hints: hints.map((hint) => quote(hint, MOST)) }),
  }
  const same =
    safe.address === address &&
    safe.unverified === unverified &&
    safe.setBy === setBy &&
    (hints ?? []).every((hint, i) => hint === safe.hints?.[i])
  if (same) return reading
  const changed: { -readonly [K in keyof PresentReading]: PresentReading[K] } = {
    ...reading,
    ...safe,
  }
  if (!isText(address)) delete changed.address
  if (!isText(setBy)) delete changed.setBy
  return changed
}

/** The same reading without hints that are no words. */
export function printableAbsent(reading: AbsentReading): AbsentReading {
  const { hints, ...rest } = reading
  if (hints === undefined) return reading
  const said: unknown = hints
  if (!Array.isArray(said) || !said.every(isText)) return rest
  return { ...rest, hints: said.map((hint) => quote(hint, MOST)) }
}

/** A doubt stays one, whatever form it came in. */
function doubt(unverified: unknown): string {
  return isText(unverified) ? quote(unverified, MOST) : 'it says so, without a reason'
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}
