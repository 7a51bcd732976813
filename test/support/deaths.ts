import { expect } from 'vitest'
import type { Death } from '../model/user/mortal.js'

/** What one story came to: whether its process died, and what is wrong afterwards. */
export interface EndOfStory {
  readonly died: boolean
  readonly wrong: readonly string[]
}

/** Plays a story again and again: its process dies at the first call, at the second, and so on, until it has no more. */
export async function expectEveryDeath(
  play: (death: Death) => Promise<EndOfStory>,
  last: Death['last'],
  calls: { readonly least: number; readonly most: number },
): Promise<void> {
  const wrong: string[] = []
  let at = 1
  for (; at < calls.most; at += 1) {
    const end = await play({ at, last })
    wrong.push(...end.wrong)
    if (!end.died) break
  }
  expect(wrong).toEqual([])
  expect(at).toBeGreaterThan(calls.least)
  expect(at).toBeLessThan(calls.most)
}
