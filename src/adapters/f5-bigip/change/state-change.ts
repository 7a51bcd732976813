import { caught, leftBehind } from '../../../kit/errors.js'
import type { ChangeOutcome } from '../../../kit/change.js'
import type { Turnstile } from '../../../kit/turnstile.js'
import type { AdminState, CallContext, Json } from '../../../provider/contract.js'
import { stateOf, toAdmin, toWords } from '../codec/members.js'
import { memberPath } from '../codec/names.js'
import type { Part, Place } from './places.js'
import { writeOne, type Failed } from './write.js'

/** What a change of a state is to make of what was found. */
export interface Wish {
  readonly places: readonly Place[]
  readonly to: AdminState
  /** The words that were there before, for a restore. */
  readonly native?: Json | undefined
  /** Whether what is in a state has to be written. */
  readonly needed: (own: Part['own']) => boolean
}

/** Objects of one place. */
type Objects = readonly [place: Place, parts: readonly Part[]]

/**
 * One change of a state: on every unit the object itself, then, where it is an FQDN template, what that made, as far as
 * it did not go along. Where one is refused, what was done of it before is put back.
 */
export class StateChange {
  /** Whether anything of it was sent. */
  isSent = false
  readonly #wish: Wish
  readonly #turn: Turnstile
  readonly #done = new Set<Place>()

  /** @param turn - of all writes of the call */
  constructor(wish: Wish, turn: Turnstile) {
    this.#wish = wish
    this.#turn = turn
  }

  /** Whether the configuration of a unit was changed, be it put back again. */
  get isTouched(): boolean {
    return this.#done.size > 0
  }

  async make(ctx: CallContext): Promise<ChangeOutcome> {
    const objects = this.#wish.places.map((place) => [place, place.parts.slice(0, 1)] as const)
    const failure =
      (await this.#write(objects, ctx)) ??
      (await caught(
        ctx,
        async () => this.#write(await this.#copies(ctx), ctx),
        (error): Failed => ({ status: 'unknown', error }),
      ))
    if (failure === undefined) return { status: 'applied' }
    const { status, error } = failure
    const left = status === 'rejected' ? await this.#putBackAll(ctx) : []
    if (left.length === 0) return { status, error }
    const words = `what was done before could not be put back at ${left.join(', ')}`
    return { status: 'unknown', error: leftBehind(error, words) }
  }

  /**
   * Writes what has to be written of these, each whatever became of the others.
   *
   * @returns the worst that failed
   */
  async #write(objects: readonly Objects[], ctx: CallContext): Promise<Failed | undefined> {
    const { to, native, needed } = this.#wish
    const onSend = (): void => {
      this.isSent = true
    }
    const failed: Failed[] = []
    for (const [place, parts] of objects) {
      for (const { path } of parts.filter(({ own }) => needed(own))) {
        const write = {
          device: place.device,
          path,
          words: toWords(to, native),
          onSend,
          turn: this.#turn,
        }
        const written = await writeOne(write, ctx)
        if (written.status === 'applied') this.#done.add(place)
        else failed.push(written)
      }
    }
    return failed.find(({ status }) => status === 'unknown') ?? failed[0]
  }

  /** What templates made that did not go along; one that DNS took away meanwhile needs nothing. */
  async #copies(ctx: CallContext): Promise<readonly Objects[]> {
    const copies: Objects[] = []
    for (const place of this.#wish.places) {
      const { device, pool } = place
      const parts = place.parts.slice(1).filter(({ own }) => this.#wish.needed(own))
      if (pool === undefined || parts.length === 0) continue
      const rows = (await device.listMembers(pool, ctx))?.rows ?? []
      const now = new Map(rows.map((row) => [memberPath(pool, row.fullPath), row.own]))
      const there = parts.flatMap((part) => {
        const own = now.get(part.path)
        return own === undefined ? [] : { ...part, own }
      })
      copies.push([place, there])
    }
    return copies
  }

  /** @returns where something of the change is left, and why */
  async #putBackAll(ctx: CallContext): Promise<readonly string[]> {
    const left: string[] = []
    for (const place of this.#done) {
      const back = (): Promise<string | undefined> => this.#putBack(place, ctx)
      const why = await caught(ctx, back, ({ message }) => message)
      if (why !== undefined) left.push(`${place.device.host} (${why})`)
    }
    return left
  }

  /**
   * Puts a place back to the state it was found in: an object before what it made, which can go along with it. What another
   * client made of it meanwhile is left alone.
   *
   * @returns why something of the change is left; undefined where nothing is
   */
  async #putBack({ device, parts }: Place, ctx: CallContext): Promise<string | undefined> {
    const ours = new Set<AdminState | 'unknown'>([this.#wish.to])
    for (const { path, own, native } of parts) {
      if (own === 'unknown') continue
      const item = await device.session.get(path, ctx)
      if (item === undefined) {
        if (path === parts[0].path) return 'it is not there'
        // DNS took a copy away: said by a device that is ready.
        await device.confirmReady(ctx)
        continue
      }
      const { session, state } = stateOf(item)
      const now = toAdmin(session, state)
      if (now === own || !ours.has(now)) continue
      if (own === 'maint') return 'maint may cut what has come since'
      ours.add(own)
      const write = { device, path, words: toWords(own, native), turn: this.#turn }
      const written = await writeOne(write, ctx)
      if (written.status !== 'applied') return written.error.message
    }
    return undefined
  }
}
