/**
 * What the copies of this package in one process share: an ESM and a CJS copy hold one balancer and one store together.
 * The number is that of its form; another version has a home of its own.
 */
const HOME = Symbol.for('drainable.home.1')

/** One map for each kind of thing, by its name. */
export function homeOf<T extends object>(name: string, make: () => T): T {
  const holder = globalThis as unknown as Record<symbol, Map<string, object> | undefined>
  const home = (holder[HOME] ??= new Map())
  const known = home.get(name) as T | undefined
  if (known !== undefined) return known
  const made = make()
  home.set(name, made)
  return made
}
