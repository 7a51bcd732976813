// What a server's line inherits from its backend and from the defaults section that applies.
import type { Section } from '../codec/configuration.js'

type Line = Readonly<Record<string, unknown>>
/** `unknown`: they could not be read. */
export type Sections = readonly Section[] | 'unknown'

/** The defaults sections that may apply to a backend: the one that it names, else every one. */
export function appliesTo(backend: Sections, defaults: Sections): Sections {
  if (backend === 'unknown' || defaults === 'unknown') return defaults
  const named = new Set(backend.map(({ from }) => from))
  const own = defaults.filter(({ name }) => name !== undefined && named.has(name))
  if (own.length === 0) return defaults
  return own
}

/** Whether a server has an option: its own line decides, then its backend's, then the defaults section that applies. */
export function option(
  key: string,
  value: string,
  line: Line,
  backend: Sections,
  defaults: Sections,
): boolean | 'unknown' {
  if (line[key] !== undefined) return line[key] === value
  if (backend === 'unknown' || defaults === 'unknown') return 'unknown'
  const has = ({ defaultServer }: Section): boolean => defaultServer[key] === value
  if (backend.some(has)) return true
  if (!defaults.some(has)) return false
  return defaults.every(has) ? true : 'unknown'
}
