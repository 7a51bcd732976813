import { caught, leftBehind } from '../../../kit/errors.js'
import type { ChangeOutcome } from '../../../kit/change.js'
import type { AdminState, CallContext, Json } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import { stateOf, toAdmin, toWords } from '../codec/members.js'
import { memberPath } from '../codec/names.js'
import type { Part, Place } from './places.js'
import { writeOne, type Write, type Written } from './writes.js'

/** What a change of a state is to make of what was found. */
export interface Wish {
  readonly places: readonly Place[]
  readonly to: AdminState
  /** The words that were there before, for a restore. */
  readonly native?: Json | undefined
  /** Whether what is in a state has to be written. */
  readonly needed: (own: Part['own']) => boolean
}

/**
 * One change of a state on its way: on every unit the object itself, then, where it is an FQDN template,
 * what that made, as far as it did not go along. Where one is refused, what was done of it before is put back.
 */
export class Half {
  /** Whether anything of it was sent. */
  isSent = false
  readonly #wish: Wish
  readonly #done = new Set<Place>()
  readonly #failed: Exclude<Written, { status: 'applied' }>[] = []
  #waiting = 0
  #stage: 'objects' | 'copies' | 'none' = 'objects'

  constructor(wish: Wish) {
    this.#wish = wish
  }

  /** The writes that come next: those of the objects themselves, then those of what templates made. */
  async next(ctx: CallContext): Promise<readonly Write[]> {
    const { places, needed } = this.#wish
    const isFirst = this.#stage === 'objects'
    const copies = places.some(({ parts }) => parts.slice(1).some(({ own }) => needed(own)))
    this.#stage = isFirst && copies ? 'copies' : 'none'
    const failed = (error: DrainableError): readonly Write[] => {
      this.#failed.push({ status: 'unknown', error })
      return []
    }
    const writes = isFirst
      ? places.flatMap((place) => this.#writes(place, place.parts.slice(0, 1)))
      : await caught(ctx, () => this.#copies(ctx), failed)
    this.#waiting = writes.length
    return writes
  }

  /** What did not go along with its template; one that DNS took away meanwhile needs nothing. */
  async #copies(ctx: CallContext): Promise<readonly Write[]> {
    const writes: Write[] = []
    for (const place of this.#wish.places) {
      const { device, pool } = place
      if (pool === undefined || place.parts.length === 1) continue
      const rows = (await device.listMembers(pool, ctx))?.rows ?? []
      const now = new Map(rows.map((row) => [memberPath(pool, row.fullPath), row.own]))
      const parts = place.parts.slice(1).flatMap((part) => {
        const own = now.get(part.path)
        return own === undefined || !this.#wish.needed(part.own) ? [] : { ...part, own }
      })
      writes.push(...this.#writes(place, parts))
    }
    return writes
  }

  note({ place }: Write, written: Written): void {
    this.#waiting -= 1
    if (written.status === 'applied') this.#done.add(place)
    else this.#failed.push(written)
  }

  /** Whether every write has its outcome, and none is to come. */
  get isOver(): boolean {
    return this.#waiting === 0 && (this.#stage === 'none' || this.#failed.length > 0)
  }

  /** All writes done is done; else the worst of them tells. */
  async outcome(ctx: CallContext): Promise<ChangeOutcome> {
    const unknown = this.#failed.find(({ status }) => status === 'unknown')
    const failure = unknown ?? this.#failed[0]
    if (failure === undefined) return { status: 'applied' }
    const left: string[] = []
    if (failure.status === 'rejected') {
      for (const place of this.#done) {
        const back = (): Promise<string | undefined> => this.#putBack(place, ctx)
        const why = await caught(ctx, back, ({ message }) => message)
        if (why !== undefined) left.push(`${place.device.host} (${why})`)
      }
    }
    const { status, error } = failure
    if (left.length === 0) return { status, error }
    const words = `what was done before could not be put back at ${left.join(', ')}`
    return { status: 'unknown', error: leftBehind(error, words) }
  }

  /**
   * Puts a place back to the state it was found in: an object before what it made, which can go along with it. What another
   * client made of it meanwhile is left alone.
   *
   * @returns why something of the change is left; undefined where nothing is
   */
  async #putBack(place: Place, ctx: CallContext): Promise<string | undefined> {
    const ours = new Set<AdminState | 'unknown'>([this.#wish.to])
    for (const { path, own, native } of place.parts) {
      if (own === 'unknown') continue
      const item = await place.device.session.get(path, ctx)
      if (item === undefined) {
        if (path === place.parts[0].path) return 'it is not there'
        // DNS took a copy away: said by a device that is ready.
        await place.device.confirmReady(ctx)
        continue
      }
      const { session, state } = stateOf(item)
      const now = toAdmin(session, state)
      if (now === own || !ours.has(now)) continue
      if (own === 'maint') return 'maint may cut what has come since'
      ours.add(own)
      const written = await writeOne({ place, path, words: toWords(own, native) }, ctx)
      if (written.status !== 'applied') return written.error.message
    }
    return undefined
  }

  #writes(place: Place, parts: readonly Part[]): readonly Write[] {
    const { to, native, needed } = this.#wish
    const onSend = (): void => {
      this.isSent = true
    }
    const open = parts.filter(({ own }) => needed(own))
    return open.map(({ path }) => ({ place, path, words: toWords(to, native), onSend }))
  }
}
