import { transition } from 'drainable/machine'
import { canonical } from '../canonical.js'
import type { Case, Step } from '../node.js'

/** What a look may go on to say after it has lowered a wish or dropped a verdict, and what is no news. */
const QUIET = ['fault', 'load', 'in-force', 'phase', 'idle']

/** Inputs that the run itself makes, each once. */
const ONCE = ['goal', 'inherit', 'denied']

/** What an input that is delivered twice changes; empty where it changes nothing. */
export function wrongTwice({ input, node }: Step, { policy }: Case): readonly string[] {
  if (input === null || ONCE.includes(input.type)) return []
  if (input.type === 'result' && input.givenUp === true) return [] // the end of its call comes in as well
  const again = transition(node.machine, input, policy)
  const said = again.effects.filter(
    (effect) => !(effect.type === 'emit' && QUIET.includes(effect.event.type)),
  )
  if (said.length > 0) {
    const words = said.map((effect) => (effect.type === 'emit' ? effect.event.type : effect.type))
    return [`'${input.type}' twice: ${words.join(', ')}`]
  }
  if (input.type === 'reading') return [] // one that changed the wish is read by the new one
  const same = canonical(again.state, node.now) === canonical(node.machine, node.now)
  return same ? [] : [`'${input.type}' twice leads to another state`]
}
