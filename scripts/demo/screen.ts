/** One server as it is shown. */
export interface ServerView {
  readonly name: string
  readonly state: string
  readonly active: number
  readonly queued: number
  readonly note: string
}

const BAR = 24

/**
 * A live view on a terminal, plain lines elsewhere.
 *
 * The lines of the view are written over and over again; what is said goes above them and stays.
 */
export class Screen {
  readonly #live: boolean
  #shown = 0

  constructor(live = process.stdout.isTTY) {
    this.#live = live
  }

  get isLive(): boolean {
    return this.#live
  }

  /** A line that stays. */
  say(text: string): void {
    this.#erase()
    process.stdout.write(`${text}\n`)
  }

  show(servers: readonly ServerView[], footer: string): void {
    if (!this.#live) return
    const lines = [...servers.map((server) => serverLine(server)), footer]
    const width = process.stdout.columns
    this.#erase()
    for (const line of lines) process.stdout.write(`${line.slice(0, Math.max(20, width - 1))}\n`)
    this.#shown = lines.length
  }

  /** Nothing more is shown; what stands there stays. */
  end(): void {
    this.#shown = 0
  }

  #erase(): void {
    if (this.#shown > 0) process.stdout.write(`\u001b[${this.#shown}A\u001b[J`)
    this.#shown = 0
  }
}

function serverLine({ name, state, active, queued, note }: ServerView): string {
  const bar = ('#'.repeat(Math.min(BAR, active)) + '+'.repeat(queued)).slice(0, BAR).padEnd(BAR)
  const counts = `${String(active).padStart(2)} in flight ${String(queued).padStart(2)} queued`
  return `  ${name.padEnd(6)} ${state.padEnd(8)} [${bar}] ${counts}  ${note}`
}
