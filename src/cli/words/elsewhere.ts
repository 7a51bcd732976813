import type { ElsewhereData } from '../result.js'
import { lineKey } from './event.js'

/** A drain that only other names of the configuration list. */
export function elsewhereWords({ ticket, balancers, held }: ElsewhereData): string {
  const names = held.map(lineKey).join(', ')
  return `ticket ${ticket} of other balancers may hold ${names}: 'drainable orphans ${balancers}' lists it`
}
