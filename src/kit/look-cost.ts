/** Looks at a device that cost less: by a list or one by one, and left out where nothing happens. */
import type { Clock } from '../provider/clock.js'
import type { MemberRef, Reading, Snapshot } from '../provider/contract.js'
import { isDrainableError } from '../provider/error.js'
import { refKey } from '../provider/member-ref.js'

/** So many are asked for one by one without asking how many there are, for as long as it is not known what their list costs. */
const FEW = 16
/** So many in all, a few at a time, and it is worth to ask: whoever watches a few pools asks for them for hours. */
const MANY = 128
/** What one object of a list that was not read yet is taken for, in bytes: a pool of two members, with its counters. */
const ROW = 2_000
/** What a request costs beside its bytes, at least, in milliseconds: a management service works for it too. */
const REQUEST = 20
/** As many bytes cost as much as one millisecond. */
const BYTES = 1_000

/** Of how many requests the quickest tells what one takes. */
const LATELY = 8

/** The time and the bytes of a list, and how many objects it has. */
interface Cost {
  readonly time: number
  readonly bytes: number
  readonly count: number
}

/** What a list costs that could not be had: too large, or too slow. */
const FAILED: Cost = { time: 60_000, bytes: 0, count: 1 }

/** How much of a list's time is remembered each time that it is not read. */
const FORGETS = 0.98

/** What the requests of one client take. */
export class Spending {
  /** Milliseconds of the last one. */
  last = 0
  #requests = 0
  #ms = 0
  #bytes = 0
  #lately: readonly number[] = []

  note(ms: number, bytes: number): void {
    this.last = ms
    this.#lately = [...this.#lately.slice(1 - LATELY), ms]
    this.#requests += 1
    this.#ms += ms
    this.#bytes += bytes
  }

  /** The least that one of the last few took, in milliseconds. */
  get least(): number {
    return this.#lately.length === 0 ? 0 : Math.min(...this.#lately)
  }

  /** What everything up to now took, in milliseconds. */
  get time(): number {
    return Math.max(this.#ms, REQUEST * this.#requests)
  }

  get bytes(): number {
    return this.#bytes
  }
}

/** Instead of a list that is too large or too slow: what is wanted of it is asked for one by one. */
export function tooDear(error: unknown): undefined {
  if (isDrainableError(error, 'MALFORMED_REPLY', 'CALL_TIMEOUT')) return undefined
  throw error
}

/**
 * Decides whether one list of all objects costs less than an answer for each that is wanted, by what the last list took.
 * A device can have thousands of objects, of which seven are looked at.
 */
export class ListCost {
  readonly #spending: Spending
  /** Of the last one, or of the first one as far as it can be told beforehand. */
  #last: Cost | undefined
  /** How many were wanted, a few at a time, before it was asked how many there are. */
  #wanted = 0

  /** @param spending - of the client that reads the list */
  constructor(spending: Spending) {
    this.#spending = spending
  }

  /**
   * Reads the list, and remembers what it took.
   *
   * @param read - reads the list
   * @param count - how many objects it has
   */
  async of<T>(read: () => Promise<T>, count: (list: T) => number): Promise<T> {
    const { time, bytes } = this.#spending
    this.#last = FAILED // until it is there
    const list = await read()
    const after = this.#spending
    const took = { time: after.time - time, bytes: after.bytes - bytes }
    this.#last = { ...took, count: Math.max(1, count(list)) }
    return list
  }

  /**
   * Whether the list is the cheaper way to so many objects.
   *
   * @param size - asks how many there are, before the first list is read; undefined where the device does not tell
   */
  async pays(wanted: number, size: () => Promise<number | undefined>): Promise<boolean> {
    this.#last ??= await this.#guess(wanted, size)
    if (this.#last === undefined) return false
    const { time, bytes, count } = this.#last
    const each = Math.max(REQUEST, this.#spending.least) + bytes / count / BYTES
    const pays = time + bytes / BYTES < wanted * each
    // It may have been slow because the device was busy: the list is tried again after a while. Its bytes stay.
    if (!pays) this.#last = { time: time * FORGETS, bytes, count }
    return pays
  }

  /** What a first list may cost: it is not to be that of a whole device for a few of its objects. Undefined: not known yet. */
  async #guess(wanted: number, size: () => Promise<number | undefined>): Promise<Cost | undefined> {
    const isFew = wanted <= FEW
    if (isFew) {
      if (wanted > 1) this.#wanted += wanted
      if (this.#wanted <= MANY) return undefined
      this.#wanted = -Infinity // asked once
    }
    const count = await (isFew ? size().catch(notTold) : size())
    if (isFew && count === undefined) return undefined
    return { time: REQUEST, bytes: Math.max(1, count ?? 0) * ROW, count: Math.max(1, count ?? 0) }
  }
}

/** Nobody has to know: few can be asked for one by one. */
function notTold(error: unknown): undefined {
  if (!isDrainableError(error)) throw error
}

/** So many looks in a row have to show the same before one is left out. */
const LOOKS = 5
/** A watcher that is faster than that wants to see each look, in milliseconds. */
const SLOW = 1_000
/**
 * A change by another client is told after that many milliseconds at the latest. That a member was removed needs one look
 * more, a pause after the one that shows it first; both take their time.
 */
const TOLD_AFTER = 9_500
/** One in so many looks is a whole one; the others need not ask for what no client changes on a member. */
const WHOLE = 3
/** For how long each look is taken after something was asked for or changed, in milliseconds. */
const AWAKE = 60_000

interface Last {
  readonly clock: Clock
  readonly key: string
  readonly snapshot: Snapshot
  readonly signature: string | undefined
  /** When it was asked for. */
  readonly at: number
  /** How many looks in a row have shown the same. */
  readonly times: number
}

/**
 * Leaves looks out where nothing happens: while the same members are looked at again and again, and all of them have been
 * in service without a change for a while. Then the last look is given once more, with the times of its numbers, and a
 * new one is taken often enough that a change by another client is told within ten seconds. Two in three of these may be brief:
 * whatever they show that is new is looked at again, by a whole one. Any other call ends that: a drain that begins, or a
 * change, goes by new looks.
 */
export class Steady {
  readonly #pause: number
  #last: Last | undefined
  #calledAt = -Infinity
  #awakeUntil = -Infinity

  /** @param pause - the shortest between two looks of one watcher, in milliseconds */
  constructor(pause: number) {
    this.#pause = pause
  }

  /** Whether nothing has happened for a while. */
  get isSteady(): boolean {
    return (this.#last?.times ?? 0) >= LOOKS
  }

  /** Something is changed, or asked for: from now on looks are taken. */
  wake({ clock }: { readonly clock: Clock }): void {
    this.#last = undefined
    this.#awakeUntil = clock.now() + AWAKE
  }

  /**
   * One look: a new one by `observe`, or the last one where nothing happens.
   *
   * @param observe - `brief`: it is enough to see whether another client has changed a member
   */
  async look(
    refs: readonly MemberRef[] | 'all',
    { clock }: { readonly clock: Clock },
    observe: (brief: boolean) => Promise<Snapshot>,
  ): Promise<Snapshot> {
    const known = this.#reuse(refs, clock)
    if (known !== undefined) return known
    const at = clock.now()
    const { signature, times = 0 } = this.#last ?? {}
    const isBrief = this.isSteady && times % WHOLE !== 0
    const first = await observe(isBrief)
    const isNew = isBrief && signatureOf(first) !== signature
    const snapshot = isNew ? await observe(false) : first
    this.#note(refs, clock, at, snapshot)
    return snapshot
  }

  /** The last look, where nothing happens. Called for each one that is asked for. */
  #reuse(refs: readonly MemberRef[] | 'all', clock: Clock): Snapshot | undefined {
    const now = clock.now()
    const since = now - this.#calledAt
    this.#calledAt = now
    const last = this.#last
    if (last === undefined || last.clock !== clock || last.key !== keyOf(refs)) {
      this.#last = undefined
      return undefined
    }
    // A watcher keeps its pace: what comes between is the first look of somebody else.
    const pause = this.#pause
    const isPaced = pause >= SLOW && since >= pause && since <= pause * 1.5
    if (!isPaced) this.#last = { ...last, times: 0 }
    // Left out, the next chance is a pause later, and the look that confirms it one more.
    const isFresh = now + 2 * since - last.at <= TOLD_AFTER
    const isAwake = now < this.#awakeUntil && this.#awakeUntil <= now + AWAKE
    return isPaced && isFresh && !isAwake && this.isSteady ? last.snapshot : undefined
  }

  /** Takes a new look in, asked for at that moment. */
  #note(refs: readonly MemberRef[] | 'all', clock: Clock, at: number, snapshot: Snapshot): void {
    const signature = signatureOf(snapshot)
    const key = keyOf(refs)
    const before = this.#last
    const same = signature !== undefined && before?.signature === signature && before.key === key
    const times = same ? before.times + 1 : 0
    this.#last = { clock, key, snapshot, signature, at, times }
  }
}

function keyOf(refs: readonly MemberRef[] | 'all'): string {
  return refs === 'all' ? refs : refs.map(refKey).join('\n')
}

/** Changes with everything but the numbers; undefined where a member is not in service, or not read. */
function signatureOf({ readings, pools, ended }: Snapshot): string | undefined {
  if (!readings.every(isInService)) return undefined
  const states = readings.map(({ scopes, ...reading }) => [
    reading,
    scopes.map(({ scope, incarnation, admin, note }) => [scope, incarnation, admin, note]),
  ])
  return JSON.stringify([states, pools, ended])
}

function isInService(reading: Reading): boolean {
  if (!reading.present || reading.own !== 'ready' || reading.stored !== undefined) return false
  const isRead = reading.scopes.every(({ state, inForce }) => state === 'read' && inForce !== false)
  return reading.inherited === undefined && isRead
}
