import type { RollEvent } from '../../fleet/roll/events.js'
import type { Io } from '../io.js'
import type { Result } from '../result.js'
import { withFlags } from '../words/flags.js'
import type { Printer } from './printer.js'

/** The fields that are sentences of the library. */
const SENTENCES = new Set(['text', 'hint', 'message', 'reason'])

/** Names options and verbs as the command has them. */
function said(key: string, value: unknown): unknown {
  return typeof value === 'string' && SENTENCES.has(key) ? withFlags(value) : value
}

/** One document at the end on stdout; what is for a person goes to stderr. */
export function jsonPrinter({ stdout, stderr }: Io): Printer {
  return {
    event: () => undefined,
    say: (text) => stderr.write(`${text}\n`),
    pause: () => undefined,
    resume: () => undefined,
    end: (result) => stdout.write(`${JSON.stringify(result, said, 2)}\n`),
  }
}

/** A line for each event on stdout, and the document as the last one. */
export function jsonlPrinter({ stdout, stderr }: Io): Printer {
  const line = (value: RollEvent | ({ readonly type: 'result' } & Result)): void => {
    stdout.write(`${JSON.stringify(value, said)}\n`)
  }
  return {
    event: line,
    say: (text) => stderr.write(`${text}\n`),
    pause: () => undefined,
    resume: () => undefined,
    end: (result) => line({ type: 'result', ...result }),
  }
}
