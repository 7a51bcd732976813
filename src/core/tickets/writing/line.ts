import { homeOf } from '../../balancer/home.js'
import type { TicketStore } from '../store.js'

/**
 * All that runs of this process write under one key of a store, one after another and in order: a run that another one has
 * ended may have a writing under way when that one drops the ticket.
 */
export class TicketLine {
  /** Writes once more what is to be there: of whoever wrote, or dropped, last. */
  again: (() => void) | undefined
  readonly #emptied: () => void
  /** Resolves when all that was asked for so far has ended, however. */
  #tail: Promise<void> = Promise.resolve()
  /** What has not ended, also where no call waits for it any more. */
  #open = 0
  /** Changes of the key that have not ended. One that was given up counts: it may still be carried out. */
  #changing = 0
  /** A later writing has begun meanwhile: the earlier one may come last. */
  #overtaken = false
  #last: () => unknown = () => undefined

  constructor(emptied: () => void) {
    this.#emptied = emptied
  }

  /** Does something after all that was asked for before. */
  enter(task: () => Promise<void>): Promise<void> {
    const before = this.#tail
    const done = this.#hold(before.then(task))
    this.#tail = done.catch(() => undefined)
    return done
  }

  /** A writing begins that is to be there at last. */
  begin(again: () => void): void {
    this.again = again
    if (this.#changing > 0) this.#overtaken = true
  }

  /**
   * One change of the key. If it is given up, it may still be carried out, over a later one. Later ones don't wait for
   * it; once all have ended, what is to be there is written once more.
   *
   * @param wait - waits for its end, or gives it up
   */
  change<T>(
    call: () => PromiseLike<T> | T,
    wait: (ending: Promise<T>) => Promise<T> = (ending) => ending,
  ): Promise<T> {
    if (this.#changing > 0) this.#overtaken = true
    this.#changing += 1
    this.#last = call
    const ending = (async () => call())()
    const ended = (): void => {
      this.#changing -= 1
      if (this.#changing > 0 || !this.#overtaken) return
      this.#overtaken = false
      if (this.again === undefined) void this.change(this.#last).catch(() => undefined)
      else this.again()
    }
    void this.#hold(ending.then(ended, ended))
    return wait(ending)
  }

  async #hold(doing: Promise<void>): Promise<void> {
    this.#open += 1
    try {
      await doing
    } finally {
      this.#open -= 1
      if (this.#open === 0) this.#emptied()
    }
  }
}

interface Lines {
  readonly byObject: WeakMap<object, Map<string, TicketLine>>
  readonly byName: Map<string, TicketLine>
}

/** The line of a ticket in its store; it is forgotten once nothing goes on in it. */
export function lineOf(kept: object, id: string): TicketLine {
  const lines = homeOf('lines', (): Lines => ({ byObject: new WeakMap(), byName: new Map() }))
  const place = placeOf(kept)
  if (typeof place === 'string') return lineIn(lines.byName, `${place}\0${id}`)
  const ids = lines.byObject.get(place) ?? new Map<string, TicketLine>()
  lines.byObject.set(place, ids)
  return lineIn(ids, id)
}

function lineIn(lines: Map<string, TicketLine>, key: string): TicketLine {
  const line = lines.get(key) ?? new TicketLine(() => lines.delete(key))
  lines.set(key, line)
  return line
}

/** What two stores that keep their tickets in one place have in common: a path, or the storage behind them. */
export type Place = object | string

const places = (): WeakMap<object, Place> => homeOf('places', () => new WeakMap<object, Place>())

/** Notes where a store keeps its tickets. */
export function keptIn(store: TicketStore, place: Place): TicketStore {
  places().set(store, place)
  return store
}

/** Where a store, or a callback, keeps its tickets; each has a place of its own where nothing else is known. */
export function placeOf(kept: object): Place {
  return places().get(kept) ?? kept
}
