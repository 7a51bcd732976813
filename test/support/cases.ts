import { isCi } from './skipped.js'

/** Of a test over many seeds or kills a run outside of CI plays one in so many. */
const SHARE = 20

/** How many cases to play of those that CI plays: all of them with `CI` set, a twentieth elsewhere. */
export function cases(all: number): number {
  return isCi() ? all : Math.ceil(all / SHARE)
}

/** Of a list of cases: all with `CI` set, a fourth elsewhere. */
export function some<T>(all: readonly T[]): readonly T[] {
  return all.filter((_, i) => isCi() || i % 4 === 0)
}

/** Of cases that are counted only as they are played, one in so many: each of them with `CI` set. */
export const ONE_IN = isCi() ? 1 : SHARE

/** For the title of such a test: `1,000`, or `100 of 1,000`. */
export function casesOf(all: number): string {
  const [played, most] = [cases(all), all].map((count) => count.toLocaleString('en'))
  return played === most ? most! : `${played} of ${most}`
}

/**
 * The setups of a product that a suite is played in: all with `CI` set, those named elsewhere. They are the ones that reach
 * the product by other ways; the others differ in a version, which has tests of its own.
 */
export function setups<T>(
  all: Readonly<Record<string, T>>,
  named: readonly string[],
): readonly (readonly [string, T])[] {
  const unknown = named.filter((name) => !(name in all))
  if (unknown.length > 0) throw new Error(`no setup is called ${unknown.join(', ')}`)
  return Object.entries(all).filter(([name]) => isCi() || named.includes(name))
}
