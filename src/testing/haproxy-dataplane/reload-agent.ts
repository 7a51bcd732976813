import type { HaproxyCli } from './cli.js'
import type { Generation } from './generation.js'

/** A reload as `reloads/ID` prints it. */
export interface ReloadEntry {
  readonly id?: string
  readonly reload_timestamp?: number
  readonly status: 'in_progress' | 'succeeded' | 'failed'
  readonly response?: string
}

/** The configuration file. */
export interface ReloadedFile {
  readonly text: string
  /** The present text is the last known good one from now on: HAProxy was reloaded with it. */
  keep(): void
  /** Back to the last known good text: everything written since is lost, also what was applied without a reload. */
  rollBack(): void
}

/**
 * Gathers reloads, as the API does: at most one in each delay, and every change within it gets the
 * same id. Only the last success and the failures are kept.
 */
export class ReloadAgent {
  readonly #cli: HaproxyCli
  readonly #generation: Generation
  readonly #delay: number
  /** How long after its signal a new process answers, in 2.x. */
  readonly #startup: number
  readonly #file: ReloadedFile
  readonly #day = new Date().toISOString().slice(0, 10)
  #count = 0
  #pending:
    | {
        readonly id: string
        readonly timer: NodeJS.Timeout | undefined
      }
    | undefined
  /** In 2.x: lets the process of a reload that "succeeded" answer. */
  #starting: (() => Promise<unknown>) | undefined
  #running: string | undefined
  #last: (Required<Pick<ReloadEntry, 'id'>> & ReloadEntry & { readonly nr: number }) | undefined
  readonly #failures = new Map<string, ReloadEntry>()

  constructor(
    cli: HaproxyCli,
    generation: Generation,
    delay: number,
    startup: number,
    file: ReloadedFile,
  ) {
    this.#cli = cli
    this.#generation = generation
    this.#delay = delay
    this.#startup = startup
    this.#file = file
  }

  /** Asks for a reload. Returns its id. */
  request(): string {
    if (this.#pending !== undefined) return this.#pending.id
    const id = `${this.#day}-${this.#count++}`
    const timer = after(this.#delay, () => void this.#execute(id))
    this.#pending = { id, timer }
    return id
  }

  /** Reloads now, without an id. */
  async force(): Promise<void> {
    await this.#reload()
    this.#file.keep()
  }

  /** One step of the reload under way: what was gathered is reloaded; in 2.x, then the new process answers. */
  async advance(): Promise<void> {
    const start = this.#starting
    if (start !== undefined) {
      await start()
      return
    }
    if (this.#pending === undefined) return
    const { id, timer } = this.#pending
    clearTimeout(timer)
    await this.#execute(id)
  }

  entry(id: string): ReloadEntry | undefined {
    if (this.#pending?.id === id || this.#running === id) return { status: 'in_progress' }
    const failure = this.#failures.get(id)
    if (failure !== undefined) return failure
    const [, nr] = /^\d{4}-\d\d-\d\d-(\d+)$/.exec(id) ?? []
    if (this.#last === undefined || nr === undefined || !id.startsWith(this.#day)) return undefined
    return Number(nr) <= this.#last.nr ? { ...print(this.#last), id } : undefined
  }

  list(): ReloadEntry[] {
    const open = [this.#running, this.#pending?.id].flatMap((id) => id ?? [])
    return [
      ...this.#failures.values(),
      ...(this.#last === undefined ? [] : [print(this.#last)]),
      ...open.map((id) => ({ id, status: 'in_progress' as const })),
    ]
  }

  close(): void {
    if (this.#pending !== undefined) clearTimeout(this.#pending.timer)
    this.#pending = undefined
  }

  /** In 2.x the reload command is a signal: it has succeeded once it is sent, and the new process comes later. */
  async #reload(): Promise<string> {
    const { text } = this.#file
    if (this.#generation.tree === 'v3') return this.#cli.reload(text)
    const start = (): Promise<unknown> => {
      if (this.#starting === start) this.#starting = undefined
      clearTimeout(timer)
      return this.#cli.reload(text).catch(() => undefined)
    }
    this.#starting = start
    const timer = after(this.#startup, () => void start())
    return ''
  }

  /** A reload that is refused rolls the file back. */
  async #execute(id: string): Promise<void> {
    this.#pending = undefined
    this.#running = id
    const stamp = { id, reload_timestamp: Math.floor(Date.now() / 1_000) }
    try {
      const response = await this.#reload()
      this.#file.keep()
      const words = this.#generation.tree === 'v2' ? {} : { response }
      this.#last = { ...stamp, ...words, status: 'succeeded', nr: Number(id.split('-').at(-1)) }
    } catch (error) {
      const response = error instanceof Error ? error.message : String(error)
      this.#file.rollBack()
      this.#failures.set(id, { ...stamp, response, status: 'failed' })
    } finally {
      this.#running = undefined
    }
  }
}

/** A timer that keeps no process alive. Node takes a time that is not finite for none at all. */
function after(ms: number, run: () => void): NodeJS.Timeout | undefined {
  if (!Number.isFinite(ms)) return undefined
  const timer = setTimeout(run, ms)
  timer.unref()
  return timer
}

function print(entry: ReloadEntry & { readonly nr: number }): ReloadEntry {
  const { id, reload_timestamp: stamp, status, response } = entry
  return {
    ...(id === undefined ? {} : { id }),
    ...(stamp === undefined ? {} : { reload_timestamp: stamp }),
    ...(response === undefined ? {} : { response }),
    status,
  }
}
