import type { AdminState, CallContext, Json } from '../../../provider/contract.js'
import { isDrainableError, type DrainableError } from '../../../provider/error.js'
import { toWords } from '../codec/members.js'
import { memberPath } from '../codec/names.js'
import type { Part, Place } from './places.js'
import { putBack } from './put-back.js'
import type { Write, Written } from './writes.js'

type Failure = Exclude<Written, { status: 'applied' }>

/**
 * One change of a state on its way: on every unit the object itself, then, where it is an FQDN template,
 * what that made, as far as it did not go along.
 */
export class Half {
  readonly #places: readonly Place[]
  readonly #to: AdminState
  readonly #native: Json | undefined
  readonly #needed: (own: Part['own']) => boolean
  readonly #outcomes = new Map<Write, Written | undefined>()
  #copies: readonly Write[] = []
  #unread: DrainableError | undefined
  /** Whether anything of it was sent. */
  isSent = false
  /** Whether what templates made is still to be read. */
  hasCopies: boolean

  /**
   * @param native - the words that were there before, for a restore
   * @param needed - whether what is in a state has to be written
   */
  constructor(
    places: readonly Place[],
    to: AdminState,
    native: Json | undefined,
    needed: (own: Part['own']) => boolean,
  ) {
    this.#places = places
    this.#to = to
    this.#native = native
    this.#needed = needed
    this.hasCopies = places.some(({ parts }) => parts.slice(1).some(({ own }) => needed(own)))
  }

  /** The writes of the objects themselves. */
  heads(): readonly Write[] {
    const writes = this.#places.flatMap((place) =>
      this.#needed(place.parts[0].own) ? this.#write(place, place.parts[0]) : [],
    )
    for (const write of writes) this.#outcomes.set(write, undefined)
    return writes
  }

  /** Reads what became of the copies: what went along with its template is not written. */
  async readCopies(ctx: CallContext): Promise<void> {
    this.hasCopies = false
    const writes: Write[] = []
    try {
      for (const place of this.#places) {
        const open = place.parts.slice(1).filter((part) => this.#needed(part.own))
        if (open.length === 0 || place.pool === undefined) continue
        const { device, pool } = place
        const rows = (await device.listMembers(pool, ctx))?.rows ?? []
        const now = new Map(rows.map((row) => [memberPath(pool, row.fullPath), row.own]))
        for (const part of open) {
          const own = now.get(part.path)
          // One that DNS took away meanwhile needs nothing.
          if (own !== undefined && this.#needed(own)) writes.push(this.#write(place, part))
        }
      }
    } catch (error) {
      if (ctx.signal.aborted || !isDrainableError(error)) throw error
      this.#unread = error
    }
    this.#copies = this.#unread === undefined ? writes : []
    for (const write of this.#copies) this.#outcomes.set(write, undefined)
  }

  copies(): readonly Write[] {
    return this.#copies
  }

  note(write: Write, written: Written): void {
    this.#outcomes.set(write, written)
  }

  /** Whether every write that there is has its outcome, and none is to come. */
  get isOver(): boolean {
    const known = [...this.#outcomes.values()].every((written) => written !== undefined)
    return known && (!this.hasCopies || this.failure() !== undefined)
  }

  /** What went wrong: what is not known before what was refused. */
  failure(): Failure | undefined {
    const failed = [...this.#outcomes.values()].flatMap((written): Failure[] =>
      written === undefined || written.status === 'applied' ? [] : [written],
    )
    const unread: Failure[] =
      this.#unread === undefined ? [] : [{ status: 'unknown', error: this.#unread }]
    return [...failed, ...unread].find(({ status }) => status === 'unknown') ?? failed[0]
  }

  /** Whether some of its writes were done, and others refused. */
  get isPartial(): boolean {
    const done = [...this.#outcomes.values()].some((written) => written?.status === 'applied')
    return done && this.failure()?.status === 'rejected'
  }

  /** Puts back what was done; returns where it could not be. */
  async putBack(ctx: CallContext): Promise<readonly string[]> {
    const left: string[] = []
    for (const place of this.#places) {
      const done = [...this.#outcomes].some(
        ([write, written]) => write.device === place.device && written?.status === 'applied',
      )
      if (!done) continue
      const why = await putBack(place, this.#to, ctx)
      if (why !== undefined) left.push(`${place.device.host} (${why})`)
    }
    return left
  }

  #write({ device, pool }: Place, { path }: Part): Write {
    const onSend = (): void => {
      this.isSent = true
    }
    return { device, path, words: toWords(this.#to, this.#native), pool, onSend }
  }
}
