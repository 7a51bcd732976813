import { DrainableError } from '../provider/error.js'
import type { ProtocolFailure } from './protocol-fake.js'

const HOWS: readonly string[] = ['status', 'refuse', 'silent', 'reset', 'garbage', 'cut']

/** Where a fake can be reached, as far as it can be told not to listen there. */
export interface Listening {
  /** From this call on nothing listens, and what is open is cut. */
  stop(): Promise<void>
  /** Listens at the same place again. */
  listen(): Promise<void>
}

/** What a fake was told to do wrong, and how much of it is left: the one way to fail of all fakes. */
export class Failures<F extends ProtocolFailure> {
  #active: { readonly what: F; skip: number; left: number }[] = []
  /** How many refusals are in force. */
  readonly #refused = new Map<Listening, number>()
  #closed = false

  /**
   * @returns ends it
   * @throws `INVALID_OPTIONS`
   */
  begin(what: F, places: readonly Listening[]): () => Promise<void> {
    checkFailure(what)
    let ended: Promise<void> | undefined
    const end = refusesAll(what) ? this.#refuse(places) : this.#add(what)
    return () => (ended ??= end())
  }

  /** What to do wrong with this request: the oldest that matches; one of its times is used up. */
  take(line: string, isMeant: (what: F) => boolean = () => true): F | undefined {
    for (const entry of this.#active) {
      const { what, left } = entry
      if (left <= 0 || !isMeant(what) || what.match?.test(line) === false) continue
      if (entry.skip > 0) {
        entry.skip -= 1
        continue
      }
      entry.left -= 1
      return what
    }
    return undefined
  }

  /** The fake is at its end: what refused does not listen again. */
  close(): void {
    this.#closed = true
  }

  #add(what: F): () => Promise<void> {
    const entry = { what, skip: what.skip ?? 0, left: what.times ?? Infinity }
    this.#active.push(entry)
    return () => {
      this.#active = this.#active.filter((one) => one !== entry)
      return Promise.resolve()
    }
  }

  #refuse(places: readonly Listening[]): () => Promise<void> {
    for (const place of places) {
      this.#refused.set(place, (this.#refused.get(place) ?? 0) + 1)
      void place.stop()
    }
    return async () => {
      for (const place of places) {
        const left = (this.#refused.get(place) ?? 1) - 1
        this.#refused.set(place, left)
        if (left === 0 && !this.#closed) await place.listen()
      }
    }
  }
}

/** Whether no connection at all is taken: what tells requests apart is read from a connection. */
function refusesAll({ how, match, times, skip }: ProtocolFailure): boolean {
  return how === 'refuse' && match === undefined && times === undefined && skip === undefined
}

function checkFailure({ how, match, times, skip }: ProtocolFailure): void {
  const wrong = (text: string) => new DrainableError('INVALID_OPTIONS', `fail(): ${text}`)
  if (!HOWS.includes(how)) throw wrong(`how is '${how}', expected one of ${HOWS.join(', ')}`)
  if (match?.global === true || match?.sticky === true) {
    throw wrong('match has the flag g or y, which remembers where it was: leave it out')
  }
  if (times !== undefined && !(times >= 1)) throw wrong(`times is ${times}, expected 1 or more`)
  if (skip !== undefined && !(skip >= 0)) throw wrong(`skip is ${skip}, expected 0 or more`)
}
