import { expect } from 'vitest'
import { ONE_IN } from './cases.js'
import type { Death } from '../model/user/mortal.js'

/** What one story came to: whether its process died, and what is wrong afterwards. */
export interface EndOfStory {
  readonly died: boolean
  readonly wrong: readonly string[]
}

/** At how many of its calls the process of a story dies, for the title of the test. */
export const AT_ANY = ONE_IN === 1 ? 'any' : `one in ${ONE_IN}`

/**
 * Plays a story again and again: its process dies at the first call, at the second, and so on, until it has no more.
 * Outside of CI it dies at one call in ten, another one for each way to die.
 */
export async function expectEveryDeath(
  play: (death: Death) => Promise<EndOfStory>,
  last: Death['last'],
  calls: { readonly least: number; readonly most: number },
): Promise<void> {
  const wrong: string[] = []
  let at = last === 'done' ? 1 : 1 + Math.floor(ONE_IN / 2)
  for (; at < calls.most; at += ONE_IN) {
    const end = await play({ at, last })
    wrong.push(...end.wrong)
    if (!end.died) break
  }
  expect(wrong).toEqual([])
  expect(at).toBeGreaterThan(calls.least)
  expect(at).toBeLessThan(calls.most)
}
