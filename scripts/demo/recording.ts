import { watch } from 'drainable'
import type { AdminState, DrainableProvider, DrainEvent, Phase } from 'drainable'

/** What one look showed of a server. */
export interface Sample {
  /** Epoch milliseconds. */
  readonly at: number
  readonly own: AdminState | 'unknown' | 'gone'
  readonly phase: Phase
  /** In flight in the present worker. */
  readonly active: number
  /** In flight in workers from before a reload. */
  readonly old: number
  readonly queued: number
}

/** A moment that a person should see; without a server it is everybody's. */
export interface Mark {
  readonly at: number
  readonly server?: string
  readonly text: string
}

/** What happened to the servers of a pool, look by look. */
export interface Recording {
  readonly samples: ReadonlyMap<string, readonly Sample[]>
  readonly marks: readonly Mark[]
}

/** Records a pool for as long as it lives, by the events that every program can have. */
export class Recorder implements Recording, AsyncDisposable {
  readonly samples = new Map<string, Sample[]>()
  readonly marks: Mark[] = []
  readonly #view: AsyncDisposable

  constructor(lb: DrainableProvider, pool: string, servers: readonly string[]) {
    for (const server of servers) this.samples.set(server, [])
    this.#view = watch(lb, { pool }, { onEvent: (event) => this.#hear(event) })
  }

  mark(text: string, server?: string): void {
    this.marks.push({ at: Date.now(), text, ...(server === undefined ? {} : { server }) })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#view[Symbol.asyncDispose]())
  }

  #hear(event: DrainEvent): void {
    if (event.type !== 'load') return
    const { at, ref, own, phase, queued, scopes } = event
    const sum = (old: boolean): number =>
      scopes
        .filter((scope) => (scope.old === true) === old && scope.state === 'read')
        .reduce((all, { active }) => all + active, 0)
    const sample = { at: Date.parse(at), own: own ?? 'gone', phase, queued } as const
    this.samples.get(ref.member)?.push({ ...sample, active: sum(false), old: sum(true) })
  }
}
