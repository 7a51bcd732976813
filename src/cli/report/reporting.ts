import { printable } from '../../provider/quote.js'
import type { Io } from '../io.js'
import type { Printer } from '../printer/printer.js'
import type { Result, Verb } from '../result.js'
import { version } from '../version.js'
import { ReportFile } from './file.js'
import { page } from './page.js'
import { TimelineRecorder } from './timeline.js'

/** What `--report` takes part in: the printing, and the end by a second signal. */
export interface Reporting {
  readonly printer: Printer
  readonly io: Io
}

/**
 * Draws what a printer is told, and writes the page when the command ends, however it ends.
 *
 * @throws `INVALID_OPTIONS` if the file can't be written
 */
export function reporting(named: string, verb: Verb, { printer: inner, io }: Reporting): Reporting {
  const file = new ReportFile(named)
  const recorder = new TimelineRecorder()
  const write = (result: Result | undefined): void => {
    const facts = { verb, version, now: Date.now() }
    try {
      file.write(page(recorder.timeline(), result, facts))
      inner.say(`the report is in ${printable(file.path)}`)
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      inner.say(`the report could not be written: ${why}`)
    }
  }
  const printer: Printer = {
    event(event) {
      recorder.event(event)
      inner.event(event)
    },
    say: (text) => inner.say(text),
    pause() {
      recorder.commandBegan(Date.now())
      inner.pause()
    },
    resume() {
      recorder.commandEnded(Date.now())
      inner.resume()
    },
    end(result) {
      write(result)
      inner.end(result)
    },
  }
  const exitNow = (code: number): void => {
    write(undefined)
    io.exitNow(code)
  }
  return { printer, io: { ...io, exitNow } }
}
