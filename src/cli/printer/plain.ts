import type { RollEvent } from '../../core/roll/events.js'
import type { Io } from '../io.js'
import { describeEvent, lineKey } from '../words/event.js'
import { describeResult } from '../words/result.js'
import type { Printer } from './printer.js'

/** The shortest time between two lines about the load of one member, in milliseconds. */
const LOAD_EVERY = 5_000

/** Lines for a log: what happens on stderr, what came of it on stdout. */
export function plainPrinter({ stdout, stderr }: Io): Printer {
  const said = new Map<string, { readonly at: number; readonly text: string }>()
  const isTooSoon = (event: RollEvent, text: string): boolean => {
    if (event.type !== 'load') return false
    const key = lineKey(event.ref)
    const before = said.get(key)
    const at = Date.parse(event.at)
    if (before !== undefined && (before.text === text || at - before.at < LOAD_EVERY)) return true
    said.set(key, { at, text })
    return false
  }
  return {
    event(event) {
      const text = describeEvent(event)
      if (text !== undefined && !isTooSoon(event, text)) stderr.write(`${text}\n`)
    },
    say: (text) => stderr.write(`${text}\n`),
    pause: () => undefined,
    resume: () => undefined,
    end: (result) => {
      const { text, error } = describeResult(result)
      if (text !== '') stdout.write(`${text}\n`)
      if (error !== '') stderr.write(`${error}\n`)
    },
  }
}
