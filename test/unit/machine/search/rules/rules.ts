import { brokenInvariants } from 'drainable/machine'
import type { Case, Node, Step } from '../node.js'
import { wrongInCalm, wrongInStandstill } from './calm.js'
import { CHANGE_RULES } from './changes.js'
import { END_RULES } from './ends.js'
import { EVENT_RULES } from './events.js'
import { IDLE_RULES } from './idle.js'
import { wrongTwice } from './twice.js'
import { wrongWords } from './words.js'

const RULES = [...IDLE_RULES, ...CHANGE_RULES, ...END_RULES, ...EVENT_RULES]

/** What one step breaks; empty where all is well. */
export function broken(before: Node, step: Step, one: Case): readonly string[] {
  const found = brokenInvariants(step.node.machine).map((text) => `invariant: ${text}`)
  if (step.input === null) return found
  const judged = { before, step, policy: one.policy, world: one.world }
  for (const [text, holds] of RULES) if (!holds(judged)) found.push(text)
  return found
}

/** One state in so many is judged by what costs more: its words, and an input that comes twice. */
const WORDS_EVERY = 8
/** The same for playing it to its end. */
const CALM_EVERY = 64

/**
 * What is wrong with a state that was reached for the first time, beside the step that led there.
 *
 * @param key - picks the states that are judged, the same in each search
 */
export function brokenIn(step: Step, one: Case, key: number): readonly string[] {
  if (key % WORDS_EVERY !== 0) return []
  const found = [...wrongWords(step.node, one), ...wrongTwice(step, one)]
  if (key % CALM_EVERY !== 0) return found
  return [...found, ...wrongInCalm(step.node, one, broken), ...wrongInStandstill(step.node, one)]
}
