import type { DrainableProvider, MemberRef, Reading } from '../provider/contract.js'
import { systemClock } from '../provider/clock.js'
import { refKey } from '../provider/member-ref.js'
import { nextPause } from './cadence.js'
import { isClaimed, takeIdle } from './claims.js'
import { emitOn } from './emitters.js'
import { laneOf, type Lane, type Look } from './lane.js'
import { dueIn, unchangedFor, workOf } from './machine/due.js'
import { inWishedState } from './machine/proof.js'
import { initialState, type DrainState, type Input, type MachinePolicy } from './machine/state.js'
import { transition } from './machine/transition.js'
import { readingsOf } from './target.js'
import { setBackgroundTimer } from './timer.js'
import { watchPolicy } from './watch.js'

/** Pause between two looks at everything, in milliseconds: a look may be large. */
const SEARCH_PAUSE = 1_000
/** A look at everything may take at most one part in that many of the time. */
const SEARCH_SHARE = 100
const SETTLE = 1_000

/**
 * Watches members that somebody else drains, for those who listen on the provider itself: looks at
 * everything once in a while, and at what is under drain as often as a drain of ours would. It never
 * changes anything and does not keep the process alive.
 */
export class Discovery {
  readonly #provider: DrainableProvider
  readonly #lane: Lane
  readonly #stop = new AbortController()
  readonly #states = new Map<string, DrainState>()
  #search: ReturnType<Lane['join']> | undefined
  #close: ReturnType<Lane['join']> | undefined
  #watched: readonly MemberRef[] = []
  #policy: MachinePolicy | undefined
  #cancelRetry: (() => void) | undefined

  constructor(provider: DrainableProvider) {
    this.#provider = provider
    this.#lane = laneOf(provider, systemClock)
    void this.#start()
  }

  async #start(): Promise<void> {
    try {
      const info = await this.#lane.describe(this.#stop.signal)
      this.#policy = watchPolicy(info.capabilities, SETTLE)
    } catch {
      // Not reachable yet: the looks below say so, and ask again.
    }
    if (this.#stop.signal.aborted) return
    const search = this.#lane.join({
      refs: 'all',
      background: true,
      see: (look) => this.#found(look),
    })
    this.#search = search
  }

  stop(): void {
    this.#stop.abort()
    this.#cancelRetry?.()
    this.#search?.leave()
    this.#close?.leave()
    this.#states.clear()
  }

  #found(look: Look): void {
    if (this.#lane.closed || this.#stop.signal.aborted) return
    if (this.#policy === undefined) {
      this.#search?.leave()
      this.#cancelRetry = setBackgroundTimer(
        this.#lane.clock,
        () => void this.#start(),
        SEARCH_PAUSE,
      )
      return
    }
    if (look.snapshot !== undefined) {
      for (const reading of look.snapshot.readings) this.#meet(reading, look)
      this.#follow()
    }
    this.#search?.next(Math.max(SEARCH_PAUSE, (look.at - look.askedAt) * SEARCH_SHARE))
  }

  #meet(reading: Reading, look: Look): void {
    const key = refKey(reading.ref)
    if (isClaimed(this.#provider, reading.ref)) {
      this.#states.delete(key)
      return
    }
    const known = this.#states.get(key) ?? this.#takeOver(reading)
    const drained = reading.present && (closed(reading.own) || closed(reading.inherited))
    if (known === undefined && !drained) return
    this.#step(known ?? initialState(reading.ref, look.askedAt, null), {
      type: 'reading',
      reading,
      askedAt: look.askedAt,
    })
  }

  /** A member that a drain of ours has left idle: its idle was announced, only what comes after is news. */
  #takeOver({ ref }: Reading): DrainState | undefined {
    const left = takeIdle(this.#provider, ref)
    return left === undefined
      ? undefined
      : { ...left, ended: null, settled: false, pending: null, deadline: null }
  }

  #step(state: DrainState, input: WithoutStamp): void {
    const policy = this.#policy
    if (policy === undefined) return
    const at = this.#lane.clock.now()
    const step = transition(state, { ...input, at, wall: Date.now() }, policy)
    const key = refKey(state.ref)
    if (
      step.state.ended !== null ||
      (step.state.last !== null && !inWishedState(step.state, policy))
    )
      this.#states.delete(key)
    else this.#states.set(key, step.state)
    for (const effect of step.effects)
      if (effect.type === 'emit') emitOn(this.#provider, effect.event)
  }

  /** A seat for what is under drain, at a drain's own cadence. */
  #follow(): void {
    const refs = [...this.#states.values()].map((state) => state.ref)
    const same =
      refs.length === this.#watched.length && refs.every((ref, i) => ref === this.#watched[i])
    if (same) return
    this.#watched = refs
    this.#close?.leave()
    this.#close = undefined
    if (refs.length === 0) return
    this.#close = this.#lane.join({ refs, background: true, see: (look) => this.#saw(look) })
  }

  #saw(look: Look): void {
    if (this.#lane.closed || this.#policy === undefined) return
    if (look.snapshot !== undefined) {
      const readings = readingsOf(look.snapshot)
      for (const state of [...this.#states.values()]) {
        const reading = readings.get(refKey(state.ref))
        if (reading === undefined) continue
        if (isClaimed(this.#provider, state.ref)) this.#states.delete(refKey(state.ref))
        else this.#step(state, { type: 'reading', reading, askedAt: look.askedAt })
      }
    } else {
      for (const state of [...this.#states.values()]) {
        this.#step(state, { type: 'unreadable', error: look.error, askedAt: look.askedAt })
      }
    }
    this.#follow()
    this.#close?.next(this.#pause())
  }

  #pause(): number {
    const policy = this.#policy
    const states = [...this.#states.values()]
    if (policy === undefined || states.length === 0) return SEARCH_PAUSE
    const { cost, floor, clock } = this.#lane
    const now = clock.now()
    const pauses = states.map((state) =>
      state.phase === 'idle'
        ? SEARCH_PAUSE
        : nextPause({
            work: workOf(state),
            unchangedFor: unchangedFor(state, now),
            due: dueIn(state, policy, now),
            cost,
            floor,
            failures: state.blind === null ? 0 : 1,
          }),
    )
    return Math.min(...pauses)
  }
}

type WithoutStamp =
  Extract<Input, { type: 'reading' | 'unreadable' }> extends infer T
    ? T extends unknown
      ? Omit<T, 'at' | 'wall'>
      : never
    : never

function closed(state: string | undefined): boolean {
  return state === 'drain' || state === 'maint'
}
