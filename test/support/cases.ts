import { isCi } from './skipped.js'

/** Of a test over many seeds or kills a run outside of CI plays one in so many. */
const SHARE = 20

/** How many cases to play of those that CI plays: all of them with `CI` set, a twentieth elsewhere. */
export function cases(all: number): number {
  return isCi() ? all : Math.ceil(all / SHARE)
}

/** Of cases that are counted only as they are played, one in so many: each of them with `CI` set. */
export const ONE_IN = isCi() ? 1 : SHARE

/** For the title of such a test: `1,000`, or `100 of 1,000`. */
export function casesOf(all: number): string {
  const [played, most] = [cases(all), all].map((count) => count.toLocaleString('en'))
  return played === most ? most! : `${played} of ${most}`
}
