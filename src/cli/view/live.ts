import { createLogUpdate } from 'log-update'
import type { RollEvent } from '../../fleet/roll/events.js'
import type { Io, Output } from '../io.js'
import type { Printer } from '../printer/printer.js'
import { printResult } from '../printer/plain.js'
import { describeEvent } from '../words/event.js'
import { Board } from './board.js'
import { drawFrame } from './frame.js'

/** The shortest time between two frames, in milliseconds. */
const FRAME = 100
/** How often the time left and the trend move on, in milliseconds. */
const TICK = 1_000

/** Events that stay in the scrollback as lines of their own. */
const LASTING: ReadonlySet<RollEvent['type']> = new Set([
  'batch',
  'fault',
  'idle-lost',
  'overruled',
  'terminated',
  'postponed',
  'failed',
])

/** A view on a terminal that is drawn anew in place. COMMAND has the terminal to itself. */
export function livePrinter(io: Io, screen: Output): Printer {
  const view = new LiveView(io, screen)
  return {
    event: (event) => view.event(event),
    say: (text) => view.say(text),
    pause: () => view.pause(),
    resume: () => view.resume(),
    end: (result) => {
      view.close()
      printResult(io, result)
    },
  }
}

class LiveView {
  readonly #io: Io
  readonly #screen: Output
  readonly #board = new Board()
  readonly #log: ReturnType<typeof createLogUpdate>
  readonly #ticks: NodeJS.Timeout
  readonly #unhear: () => void
  #soon: NodeJS.Timeout | undefined
  #commands = 0

  constructor(io: Io, screen: Output) {
    this.#io = io
    this.#screen = screen
    this.#log = createLogUpdate(asStream(screen))
    this.#ticks = setInterval(() => this.#draw(), TICK).unref()
    this.#unhear = screen.onResize?.(() => this.#draw()) ?? (() => undefined)
  }

  event(event: RollEvent): void {
    this.#board.hear(event)
    const text = LASTING.has(event.type) ? describeEvent(event) : undefined
    if (text !== undefined) this.say(text)
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined
      this.#draw()
    }, FRAME).unref()
  }

  say(text: string): void {
    if (this.#commands > 0) {
      this.#screen.write(`${text}\n`)
      return
    }
    this.#log.persist(text)
    this.#draw()
  }

  /** The last frame stays above what COMMAND prints. */
  pause(): void {
    if (this.#commands === 0) {
      this.#draw()
      this.#log.done()
    }
    this.#commands += 1
  }

  resume(): void {
    this.#commands -= 1
  }

  close(): void {
    clearInterval(this.#ticks)
    clearTimeout(this.#soon)
    this.#unhear()
    this.#commands = 0
    this.#log.clear()
    this.#log.done()
  }

  #draw(): void {
    if (this.#commands > 0 || this.#board.rows.size === 0) return
    const { columns = 80, rows = 24 } = this.#screen
    const { env } = this.#io
    const colours = (env['NO_COLOR'] ?? '') === ''
    this.#log(
      drawFrame(this.#board, Date.now(), { columns, rows, colours, unicode: isUnicode(env) }),
    )
  }
}

/** A locale that is set and is not one of UTF-8 can't show the bars. */
function isUnicode(env: Io['env']): boolean {
  const locale = [env['LC_ALL'], env['LC_CTYPE'], env['LANG']].find((one) => (one ?? '') !== '')
  return locale === undefined || /utf-?8/i.test(locale)
}

/** The little of a stream that log-update uses. */
function asStream(screen: Output): NodeJS.WritableStream {
  return {
    write: (text: string) => screen.write(text),
    get columns() {
      return screen.columns
    },
    get rows() {
      return screen.rows
    },
    isTTY: true,
  } as unknown as NodeJS.WritableStream
}
