import type { RollEvent } from '../../fleet/roll/events.js'
import type { Io, Output } from '../io.js'
import { describeEvent, lineKey } from '../words/event.js'
import { describeResult } from '../words/result.js'
import type { Result } from '../result.js'
import type { Printer } from './printer.js'

/** The shortest time between two lines about the load of one member, in milliseconds. */
const LOAD_EVERY = 5_000

/** Lines for a log: what happens on one stream, what came of it on stdout. */
export function plainPrinter(io: Io, lines: Output): Printer {
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
      if (text !== undefined && !isTooSoon(event, text)) lines.write(`${text}\n`)
    },
    say: (text) => io.stderr.write(`${text}\n`),
    pause: () => undefined,
    resume: () => undefined,
    end: (result) => printResult(io, result),
  }
}

/** The result in words: what came of it on stdout, what went wrong on stderr. */
export function printResult({ stdout, stderr }: Io, result: Result): void {
  const { text, error } = describeResult(result)
  if (text !== '') stdout.write(`${text}\n`)
  if (error !== '') stderr.write(`${error}\n`)
}
