import type { RollEvent } from '../../fleet/roll/events.js'
import type { Io } from '../io.js'
import type { Result, Verb } from '../result.js'
import { jsonPrinter, jsonlPrinter } from './json.js'
import { plainPrinter } from './plain.js'

/** What tells how a call goes and how it ended. A verb does not know which kind it has. */
export interface Printer {
  /** An event of a drain or a roll. */
  event(event: RollEvent): void
  /** A line for the person at the terminal. */
  say(text: string): void
  /** COMMAND has the terminal from now on. Several can have it at once. */
  pause(): void
  /** A COMMAND has ended. */
  resume(): void
  /** The end: the last call. */
  end(result: Result): void
}

/** The ways to print. */
export type Form = 'words' | 'json' | 'jsonl'

/** The printer of a call. */
export async function openPrinter(io: Io, form: Form, verb: Verb): Promise<Printer> {
  if (form === 'json') return jsonPrinter(io)
  if (form === 'jsonl') return jsonlPrinter(io)
  // What `watch` is for are the lines themselves.
  const lines = verb === 'watch' ? io.stdout : io.stderr
  if (lines.columns === undefined || io.env['TERM'] === 'dumb') return plainPrinter(io, lines)
  const { livePrinter } = await import('../view/live.js')
  return livePrinter(io, lines)
}
