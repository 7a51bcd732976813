import { cases, casesOf } from '../support/cases.js'
import type { Lie } from './world/product.js'
import { play } from './scenario.js'

/** The scenarios of continuous integration in one test; `npm run soak -- model` plays more of them. */
const CHUNK = 100

/** First seeds of chunks of scenarios, so that a run of the tests can be split. */
export function chunks(first: number, scenarios: number): readonly number[] {
  return Array.from({ length: scenarios / CHUNK }, (_, i) => first + i * CHUNK)
}

/** How much of each chunk this run plays. */
export const PLAYED = casesOf(CHUNK)

/** Plays one chunk; what failed, one line each, with the command that shows it again. */
export async function playChunk(first: number): Promise<readonly string[]> {
  const failed: string[] = []
  for (let seed = first; seed < first + cases(CHUNK); seed += 1)
    failed.push(...(await playOne(seed)))
  return failed
}

/** Plays one scenario; what failed, one line each. */
export async function playOne(seed: number): Promise<readonly string[]> {
  const { faults } = await play(seed)
  return faults.map(
    ({ rule, text }) => `${rule}: ${text} (npm run soak -- model --seed ${seed} --runs 1 --trace)`,
  )
}

/** Rules that must see through a lie; a library that believed as much would break them as well. */
const SEEN_BY: Readonly<Record<Lie, string>> = {
  blind: 'idle',
  lateBound: 'undo too early',
  active: 'idle',
  arrivals: 'idle',
  holds: 'seal',
  mayHide: 'idle',
}

/** The first seed by which a lie of the provider is found out. */
export async function findOut(lie: Lie, most: number): Promise<number | undefined> {
  for (let seed = 1; seed <= most; seed += 1) {
    const { faults } = await play(seed, false, lie)
    if (faults.some(({ rule }) => rule === SEEN_BY[lie])) return seed
  }
  return undefined
}
