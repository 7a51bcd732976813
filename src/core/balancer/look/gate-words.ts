import type {
  AbsentReading,
  Advice,
  LoadScope,
  PresentReading,
} from '../../../provider/contract.js'
import { printable, quote } from '../../../provider/quote.js'

/**
 * Makes a product's words printable where they come in, so that events, tickets, reasons and logs can't move a
 * terminal's cursor or break a line.
 *
 * Names are only made printable; other words are also cut. A cut name could become equal to another. `ref` and
 * `identity` stay unchanged, because the provider compares them.
 */

/** Longest note or hint, in characters. */
const MOST = 1_000

/** Returns the same scope if its words are fine. */
export function printableScope(given: LoadScope): LoadScope {
  const { scope, incarnation, note, countersFrom } = given
  const name = printableName(scope)
  // An unread scope need not have it.
  const life = isText(incarnation) ? printable(incarnation) : ''
  const said = note === undefined ? undefined : quote(note, MOST)
  const from = countersFrom === undefined ? undefined : printable(countersFrom)
  const same = name === scope && life === incarnation && said === note && from === countersFrom
  if (same) return given
  return {
    ...{ ...given, scope: name, incarnation: life },
    ...(said === undefined ? {} : { note: said }),
    ...(from === undefined ? {} : { countersFrom: from }),
  }
}

/** The name of a process. */
export function printableName(name: string): string {
  return name.trim() === '' ? 'a process without a name' : printable(name)
}

/** Returns the same reading if its words are fine. */
export function printableReading(reading: PresentReading): PresentReading {
  const { address, unverified, hints, setBy, advice } = reading
  const safe = {
    ...(isText(address) ? { address: quote(address) } : {}),
    ...(unverified === undefined ? {} : { unverified: doubt(unverified) }),
    ...(isText(setBy) ? { setBy: quote(setBy, MOST) } : {}),
    ...(hints === undefined ? {} : { hints: hints.map((hint) => quote(hint, MOST)) }),
    ...(isAdvice(advice)
      ? { advice: { text: quote(advice.text, MOST), hint: quote(advice.hint, MOST) } }
      : {}),
  }
  const same =
    safe.address === address &&
    safe.unverified === unverified &&
    safe.setBy === setBy &&
    (advice === undefined || isSameAdvice(advice, safe.advice)) &&
    (hints ?? []).every((hint, i) => hint === safe.hints?.[i])
  if (same) return reading
  const changed: { -readonly [K in keyof PresentReading]: PresentReading[K] } = {
    ...reading,
    ...safe,
  }
  if (!isText(address)) delete changed.address
  if (!isText(setBy)) delete changed.setBy
  if (!isAdvice(advice)) delete changed.advice
  return changed
}

/** Returns the same reading without hints that are not texts. */
export function printableAbsent(reading: AbsentReading): AbsentReading {
  const { hints, ...rest } = reading
  if (hints === undefined) return reading
  const said: unknown = hints
  if (!Array.isArray(said) || !said.every(isText)) return rest
  return { ...rest, hints: said.map((hint) => quote(hint, MOST)) }
}

/** Keeps a doubt, whatever type it has. */
function doubt(unverified: unknown): string {
  return isText(unverified) ? quote(unverified, MOST) : 'it says so, without a reason'
}

function isSameAdvice(given: Advice, safe: Advice | undefined): boolean {
  return safe !== undefined && safe.text === given.text && safe.hint === given.hint
}

function isAdvice(value: Partial<Advice> | null | undefined): value is Advice {
  return isText(value?.text) && isText(value.hint)
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}
