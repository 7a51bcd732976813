import type {
  AdminState,
  Change,
  Health,
  Json,
  MemberRef,
  PresentReading,
  Reading,
} from '../provider/contract.js'
import { pause } from '../provider/clock.js'
import { formatDuration } from '../provider/duration.js'
import { DrainableError, isDrainableError } from '../provider/error.js'
import { formatRef, refKey } from '../provider/member-ref.js'
import type { Lane } from './lane.js'
import { readingsOf } from './target.js'

/** One member to be opened again, or put back to what it was. */
export interface Reopening {
  readonly ref: MemberRef
  readonly to: AdminState
  /** States it may be taken from; anything else was set by somebody else. `any`: whoever set it. */
  readonly from: readonly AdminState[] | 'any'
  readonly identity?: string
  readonly native?: Json
}

/** How to wait for health. */
export interface ReopenOptions {
  readonly signal: AbortSignal
  /** Whether the member must be seen healthy at the end; else a failed check is the balancer's business. */
  readonly mustBeHealthy: boolean
  /** Milliseconds for it, or for the first check after maint. */
  readonly limit: number
  /** The caller's own check: asked under drain, before the door is opened. */
  readonly check?: (ref: MemberRef, signal: AbortSignal) => Promise<void>
}

/** What became of one member. */
export interface Reopened {
  readonly ref: MemberRef
  readonly wasAdmin: AdminState
  readonly health: Health
  readonly lastReading?: Reading
  readonly error?: DrainableError
}

type Step =
  'wait' | 'done' | { readonly expect: AdminState; readonly to: AdminState } | DrainableError

/** Pause between two looks while something is waited for, in milliseconds. */
const LOOK_PAUSE = 100
/** How often a change that met another one is tried again. */
const ATTEMPTS = 5
/** How often a member is changed before we give in to whoever sets it back. */
const MOST_CHANGES = 6
/** Looks that may fail in a row, with growing pauses. */
const MOST_FAILURES = 6
/** How long a change of another call that is under way is waited for, in milliseconds. */
export const QUIET_LIMIT = 5_000

/** One member on its way. */
class Way {
  readonly wish: Reopening
  readonly #options: ReopenOptions
  wasAdmin: AdminState | undefined
  last: Reading | undefined
  error: DrainableError | undefined
  finished = false
  /** Nothing is sent before: a lost change may still be executed. */
  notBefore = -Infinity
  attempts = 0
  /** Changes that were carried out. */
  changes = 0
  /** A change whose answer was lost: when, and what became of it. */
  lost: { readonly at: number; readonly error: DrainableError; answered: boolean } | undefined
  #left: AdminState | undefined
  #checked: 'no' | 'running' | 'passed' = 'no'

  constructor(wish: Reopening, options: ReopenOptions) {
    this.wish = wish
    this.#options = options
  }

  get health(): Health {
    return this.last?.present === true ? this.last.health : 'unknown'
  }

  /** A change of ours that was carried out: the state it led to is one of ours too. */
  moved(to: AdminState): void {
    this.#left = to
  }

  /** A look that came back: counted from the first one after a loss, the lost change can't happen any more. */
  answered(askedAt: number, now: number, lateBound: number): void {
    if (this.lost === undefined || this.lost.answered || askedAt < this.lost.at) return
    this.lost.answered = true
    this.notBefore = now + lateBound
  }

  step(reading: Reading, ladder: readonly AdminState[]): Step {
    this.last = reading
    const { wish } = this
    const name = formatRef(wish.ref)
    if (!reading.present)
      return new DrainableError(
        'MEMBER_GONE',
        `${name} is not in the pool any more, there is nothing to make ${wish.to}`,
        { ref: wish.ref },
      )
    if (wish.identity !== undefined && wish.identity !== reading.identity) {
      return new DrainableError(
        'CONFLICT',
        `${name} is another member now (another address or id), it was left alone`,
        { ref: wish.ref, retryable: false },
      )
    }
    const { own } = reading
    if (own === 'unknown') return 'wait'
    this.wasAdmin ??= own
    if (own === wish.to) return this.#arrived(reading)
    if (wish.from !== 'any' && !wish.from.includes(own) && own !== this.#left) {
      return new DrainableError(
        'CONFLICT',
        `${name} is '${own}', set so by somebody else; it was left alone`,
        { ref: wish.ref, retryable: false },
      )
    }
    if (wish.to !== 'ready') return { expect: own, to: wish.to }
    if (own === 'maint' && ladder.includes('drain') && this.#needsCheck(reading))
      return { expect: own, to: 'drain' }
    return this.#open(reading, own)
  }

  #needsCheck(reading: PresentReading): boolean {
    return (
      reading.health !== 'unchecked' ||
      (this.#options.check !== undefined && this.#checked !== 'passed')
    )
  }

  /** The door is opened once the first check after maint has a result: no checks run in maint. */
  #open(reading: PresentReading, own: AdminState): Step {
    const { health } = reading
    if (health === 'unknown' || (health === 'down' && this.#options.mustBeHealthy)) return 'wait'
    return this.#ownCheckPassed() ? { expect: own, to: 'ready' } : 'wait'
  }

  #arrived(reading: PresentReading): Step {
    const { inherited, hints = [] } = reading
    if (this.wish.to === 'ready' && (inherited === 'drain' || inherited === 'maint')) {
      const said = hints.length === 0 ? '' : `: ${hints.join('; ')}`
      return new DrainableError(
        'CONFLICT',
        `${formatRef(this.wish.ref)} is ready itself, but inherits '${inherited}'${said}`,
        { ref: this.wish.ref, retryable: false },
      )
    }
    if (this.wish.to !== 'ready' || !this.#options.mustBeHealthy) return 'done'
    if (!this.#ownCheckPassed()) return 'wait'
    return reading.health === 'up' || reading.health === 'unchecked' ? 'done' : 'wait'
  }

  #ownCheckPassed(): boolean {
    const { check, signal } = this.#options
    if (check === undefined || this.#checked === 'passed') return true
    if (this.#checked === 'no') {
      this.#checked = 'running'
      const asked = async (): Promise<void> => check(this.wish.ref, signal)
      asked().then(
        () => (this.#checked = 'passed'),
        (cause: unknown) => {
          const words = cause instanceof Error ? cause.message : String(cause)
          this.error = new DrainableError(
            'HEALTH_TIMEOUT',
            `${formatRef(this.wish.ref)}: the caller's health check failed: ${words}; it stays as it is`,
            { ref: this.wish.ref, cause },
          )
        },
      )
    }
    return false
  }

  tooLate(limit: number): DrainableError {
    if (this.lost !== undefined) return this.lost.error
    const own = this.last?.present === true ? this.last.own : 'unknown'
    const { ref } = this.wish
    if (own === 'unknown')
      return new DrainableError(
        'CONFLICT',
        `${formatRef(ref)}: the balancer contradicts itself about its state for ${formatDuration(limit)}, so nothing was changed`,
        { ref },
      )
    return new DrainableError(
      'HEALTH_TIMEOUT',
      `${formatRef(ref)} is '${own}' and no check passed within ${formatDuration(limit)} (health: ${this.health}), see what its health check says`,
      { ref },
    )
  }

  setBack(): DrainableError {
    const { ref, to } = this.wish
    const own = this.last?.present === true ? this.last.own : 'unknown'
    return new DrainableError(
      'CONFLICT',
      `${formatRef(ref)} is '${own}' again after it was made '${to}': somebody else sets it back, find out who`,
      { ref, retryable: false },
    )
  }

  result(): Reopened {
    return {
      ref: this.wish.ref,
      wasAdmin: this.wasAdmin ?? 'ready',
      health: this.health,
      ...(this.last === undefined ? {} : { lastReading: this.last }),
      ...(this.error === undefined ? {} : { error: this.error }),
    }
  }
}

/**
 * Takes members to the state wished for, by way of drain where they come out of maint: no checks run
 * in maint and some products call a server up the moment it leaves it, so the door stays closed
 * until the first check has a result.
 */
export async function reopen(
  lane: Lane,
  wishes: readonly Reopening[],
  options: ReopenOptions,
): Promise<readonly Reopened[]> {
  const over = new AbortController()
  try {
    const signal = AbortSignal.any([options.signal, over.signal])
    return await goAll(
      lane,
      wishes.map((wish) => new Way(wish, { ...options, signal })),
      options,
    )
  } finally {
    over.abort() // a check of the caller's that nobody waits for any more
  }
}

async function goAll(
  lane: Lane,
  ways: readonly Way[],
  options: ReopenOptions,
): Promise<readonly Reopened[]> {
  const { capabilities } = await lane.describe(options.signal)
  const startedAt = lane.clock.now()
  let failures = 0
  for (;;) {
    const open = ways.filter((way) => !way.finished)
    if (open.length === 0) return ways.map((way) => way.result())
    const late = lane.clock.now() - startedAt >= options.limit
    try {
      const { snapshot, askedAt, at } = await lane.look(
        open.map((way) => way.wish.ref),
        options.signal,
      )
      failures = 0
      for (const way of open) way.answered(askedAt, at, capabilities.lateBound)
      const changes = advance(
        open,
        readingsOf(snapshot),
        capabilities.ladder,
        lane.clock.now(),
        late,
        options.limit,
      )
      if (changes.length > 0) {
        await send(lane, changes, options.signal)
        continue
      }
    } catch (error) {
      if (
        options.signal.aborted ||
        late ||
        !isDrainableError(error) ||
        !error.retryable ||
        ++failures > MOST_FAILURES
      )
        throw error
    }
    if (open.some((way) => !way.finished))
      await pause(lane.clock, Math.max(LOOK_PAUSE * 2 ** failures, lane.floor), options.signal)
  }
}

function advance(
  ways: readonly Way[],
  readings: ReadonlyMap<string, Reading>,
  ladder: readonly AdminState[],
  now: number,
  late: boolean,
  limit: number,
): readonly { readonly way: Way; readonly change: Change & { readonly kind: 'restore' } }[] {
  const changes: { way: Way; change: Change & { readonly kind: 'restore' } }[] = []
  for (const way of ways) {
    const { wish } = way
    const step = way.step(
      readings.get(refKey(wish.ref)) ?? { ref: wish.ref, present: false, scopes: [] },
      ladder,
    )
    if (way.error !== undefined || step === 'done') {
      way.finished = true
    } else if (isDrainableError(step)) {
      way.error = step
      way.finished = true
    } else if (step !== 'wait' && way.changes >= MOST_CHANGES) {
      way.error = way.setBack()
      way.finished = true
    } else if (step !== 'wait' && now >= way.notBefore) {
      const { identity = way.last?.present === true ? way.last.identity : undefined, native } = wish
      changes.push({
        way,
        change: {
          kind: 'restore',
          ref: wish.ref,
          ...step,
          ...(identity === undefined ? {} : { identity }),
          ...(native === undefined ? {} : { native }),
        },
      })
    } else if (late) {
      way.error = way.tooLate(limit)
      way.finished = true
    }
  }
  return changes
}

async function send(
  lane: Lane,
  changes: readonly { readonly way: Way; readonly change: Change & { readonly kind: 'restore' } }[],
  signal: AbortSignal,
): Promise<void> {
  const results = await lane.apply(
    changes.map(({ change }) => change),
    signal,
  )
  changes.forEach(({ way, change }, i) => {
    const result = results[i]
    if (result === undefined) return
    if (!('error' in result)) {
      way.moved(change.to)
      way.lost = undefined
      way.changes += 1
      // The way out of maint has two changes; after that each one answers somebody else.
      if (way.changes > 2) way.notBefore = lane.clock.now() + LOOK_PAUSE * 2 ** (way.changes - 2)
      return
    }
    way.attempts += 1
    const { error } = result
    if (result.status === 'unknown') {
      way.moved(change.to) // it may have been carried out: then that state is ours
      way.notBefore = Infinity // until a look is answered
      way.lost = { at: lane.clock.now(), error, answered: false }
    } else if (error.retryable) {
      way.notBefore = lane.clock.now() + LOOK_PAUSE * 2 ** way.attempts
    }
    if ((result.status === 'rejected' && !error.retryable) || way.attempts >= ATTEMPTS) {
      way.error = error
      way.finished = true
    }
  })
}
