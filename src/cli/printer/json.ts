import type { RollEvent } from '../../fleet/roll/events.js'
import type { Io } from '../io.js'
import type { Result } from '../result.js'
import type { Printer } from './printer.js'

/** One document at the end on stdout; what is for a person goes to stderr. */
export function jsonPrinter({ stdout, stderr }: Io): Printer {
  return {
    event: () => undefined,
    say: (text) => stderr.write(`${text}\n`),
    pause: () => undefined,
    resume: () => undefined,
    end: (result) => stdout.write(`${JSON.stringify(result, null, 2)}\n`),
  }
}

/** A line for each event on stdout, and the document as the last one. */
export function jsonlPrinter({ stdout, stderr }: Io): Printer {
  const line = (value: RollEvent | ({ readonly type: 'result' } & Result)): void => {
    stdout.write(`${JSON.stringify(value)}\n`)
  }
  return {
    event: line,
    say: (text) => stderr.write(`${text}\n`),
    pause: () => undefined,
    resume: () => undefined,
    end: (result) => line({ type: 'result', ...result }),
  }
}
