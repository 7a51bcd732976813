import type { DrainEvent } from 'drainable'
import {
  brokenInvariants,
  explain,
  initialState,
  openGoal,
  transition,
  type DrainState,
  type Effect,
  type Goal,
  type Input,
  type LateChange,
  type MachinePolicy,
  type OpenOptions,
  type ReadingInput,
} from 'drainable/machine'
import {
  DrainableError,
  type AdminState,
  type Capabilities,
  type Change,
  type ChangeResult,
  type ErrorCode,
  type LoadScope,
  type PresentReading,
  type Reading,
  type Why,
} from 'drainable/provider'

export const WEB1 = { pool: 'web', member: 'web1' }
/** Where every run's clock begins. */
export const START = 1_000
/** Epoch milliseconds minus the run's clock. */
const WALL = Date.UTC(2026, 0, 1)

const CAPABILITIES: Capabilities = {
  ladder: ['ready', 'drain', 'maint'],
  maint: 'gentle',
  terminate: true,
  remove: true,
  add: true,
  counts: 'requests',
  freshness: 0,
  blind: 0,
  lateBound: 1_000,
  survivesReload: false,
  countsAfterRemove: true,
}

const POLICY: Omit<MachinePolicy, 'capabilities'> = {
  hold: 'drain',
  seal: 'never',
  settle: 1_000,
  until: 'idle',
  onTimeout: 'fail',
  onOverrule: 'fail',
  onMinimum: 'fail',
  escalateAfter: null,
}

/** A policy, capabilities, and what the run begins with, in one list. */
export type RunOptions = Partial<Omit<MachinePolicy, 'capabilities'>> &
  Partial<Capabilities> & {
    readonly goal?: Goal
    /** Milliseconds until the deadline. Default: none. */
    readonly timeout?: number
    readonly own?: AdminState
    readonly present?: Partial<PresentReading>
    /** Processes beside the default one, or other figures for it (`w1`). */
    readonly scopes?: Readonly<Record<string, Figures>>
  }

/** What the balancer says of one process; `behind`: its numbers are so much older than the others'. */
export type Figures = Partial<LoadScope> & { readonly behind?: number }

/** How one look goes. All times by the run's clock. */
export interface LookOptions {
  /** Milliseconds from now until the look is asked for. */
  readonly after?: number
  /** Milliseconds until the answer is there. */
  readonly took?: number
  /** When it was asked for, where that was before now. */
  readonly asked?: number
  /** How old its numbers are when it is asked for. */
  readonly stale?: number
  readonly ended?: ReadingInput['ended']
  readonly floor?: DrainableError | null
  readonly mayOpen?: boolean
  readonly random?: number
}

/** The machine's policy for one run. */
export function policyOf(options: RunOptions): MachinePolicy {
  const policy = pick(options, POLICY)
  return { ...POLICY, ...policy, capabilities: { ...CAPABILITIES, ...pick(options, CAPABILITIES) } }
}

function pick<T extends object>(from: object, keys: T): Partial<T> {
  return Object.fromEntries(Object.entries(from).filter(([key]) => key in keys)) as Partial<T>
}

/** A hold or an undo of another run whose answer never came; the member was seen without its effect. */
export function unanswered(
  change: Extract<Change, { kind: 'hold' | 'restore' }>,
  more: Partial<LateChange> = {},
): LateChange {
  return { change, lostAt: 990, until: null, lackedAt: 990, ...more }
}

/** An undo, as a run sends it. */
export function undoOf(expect: AdminState, to: AdminState): Extract<Change, { kind: 'restore' }> {
  return { kind: 'restore', ref: WEB1, expect, to }
}

/** A failure of a balancer. */
export function failure(code: ErrorCode = 'REJECTED', retryable?: boolean): DrainableError {
  const words = `the balancer says ${code}`
  return new DrainableError(code, words, retryable === undefined ? {} : { retryable })
}

/**
 * The run of one member, driven by hand: a picture of the balancer that looks are taken of, a clock,
 * and what went in and out of the machine. Every state is checked for broken invariants.
 */
export class MemberRun {
  state: DrainState
  now = START
  /** What {@link lookAt} counts from. */
  origin = START
  /** Of the last input. */
  effects: readonly Effect[] = []
  /** Every event since the start. */
  readonly heard: DrainEvent[] = []
  /** Every change that was sent. */
  readonly changes: Change[] = []
  readonly policy: MachinePolicy
  #member: Omit<PresentReading, 'ref' | 'present' | 'scopes'>
  #present = true
  readonly #scopes = new Map<string, LoadScope & { readonly behind?: number }>()

  constructor(options: RunOptions = {}) {
    this.policy = policyOf(options)
    const deadline = options.timeout === undefined ? null : this.now + options.timeout
    this.state = initialState(WEB1, this.now, deadline, options.goal ?? { kind: 'drain' })
    this.#member = {
      identity: '10.0.0.1:80',
      own: options.own ?? 'ready',
      serves: true,
      health: 'unchecked',
      ...options.present,
    }
    this.scope('w1')
    for (const [name, figures] of Object.entries(options.scopes ?? {})) this.scope(name, figures)
  }

  /** Changes what the balancer says of the member. */
  set(member: Partial<PresentReading>): this {
    this.#present = true
    this.#member = { ...this.#member, ...member }
    return this
  }

  /** The member is not in the pool. */
  vanish(): this {
    this.#present = false
    return this
  }

  /** Changes what the balancer says of one process. */
  scope(name: string, figures: Figures = {}): this {
    const known = this.#scopes.get(name) ?? {
      scope: name,
      incarnation: `${name}.1`,
      state: 'read',
      sampledAt: 0,
      active: 0,
      queued: 0,
      arrivals: 100,
    }
    this.#scopes.set(name, { ...known, ...figures })
    return this
  }

  /** The process is not listed any more. */
  unlist(name: string): this {
    this.#scopes.delete(name)
    return this
  }

  reading(sampledAt: number): Reading {
    const scopes = [...this.#scopes.values()].map(({ behind = 0, ...scope }) => ({
      ...scope,
      sampledAt: sampledAt - behind,
    }))
    return this.#present
      ? { ref: WEB1, present: true, ...this.#member, scopes }
      : { ref: WEB1, present: false, scopes }
  }

  wait(ms: number): this {
    this.now += ms
    return this
  }

  /** From now on {@link lookAt} counts from here. */
  mark(): this {
    this.origin = this.now
    return this
  }

  /** One look, ten milliseconds from now. */
  look({ after = 10, took = 0, asked, stale = 0, ...more }: LookOptions = {}): this {
    this.now += after
    const askedAt = asked ?? this.now
    const reading = this.reading(this.now - stale)
    this.now += took
    return this.put({ type: 'reading', reading, askedAt, took, ...more })
  }

  /** One look, that long after the hold took effect (or {@link mark}). */
  lookAt(offset: number, options: LookOptions = {}): this {
    return this.look({ ...options, after: this.origin + offset - this.now })
  }

  /** A look every `step` milliseconds, for that long. */
  looks(ms: number, step = 100): this {
    const until = this.now + ms
    while (this.now < until) this.look({ after: Math.min(step, until - this.now) })
    return this
  }

  /** A look that failed. */
  fail(error: DrainableError = failure('CONNECTION_LOST'), after = 10): this {
    this.now += after
    return this.put({ type: 'unreadable', error, askedAt: this.now })
  }

  /** The answer to the change under way; the balancer does what it says. */
  answer(status: 'applied' | 'unchanged' = 'applied', more: Partial<ChangeResult> = {}): this {
    const { change } = this
    if (status === 'applied') this.#carryOut(change)
    return this.result({ ref: WEB1, status, ...more } as ChangeResult)
  }

  refuse(error: DrainableError = failure()): this {
    return this.result({ ref: WEB1, status: 'rejected', error })
  }

  /** The answer is lost; `done` says whether the balancer carried the change out. */
  lose(done: 'done' | 'not done' = 'not done'): this {
    const { change } = this
    if (done === 'done') this.#carryOut(change)
    return this.result({ ref: WEB1, status: 'unknown', error: failure('CALL_TIMEOUT') })
  }

  #carryOut(change: Change): void {
    const lowers = change.kind === 'hold' && this.own === 'maint'
    if ('to' in change && !lowers) this.set({ own: change.to })
    if (change.kind === 'remove') this.vanish()
  }

  result(result: ChangeResult): this {
    return this.put({ type: 'result', change: this.change, result })
  }

  put(input: FreeInput): this {
    const step = transition(this.state, this.stamp(input), this.policy)
    this.state = step.state
    this.effects = step.effects
    for (const effect of step.effects) {
      if (effect.type === 'emit') this.heard.push(effect.event)
      if (effect.type === 'apply') this.changes.push(effect.change)
    }
    const broken = brokenInvariants(step.state)
    if (broken.length > 0) throw new Error(`after '${input.type}': ${broken.join('; ')}`)
    return this
  }

  stamp(input: FreeInput): Input {
    return { ...input, at: this.now, wall: this.now + WALL }
  }

  /** Goal `open` from now on. */
  open(options: Partial<OpenOptions> = {}): this {
    return this.put({
      type: 'goal',
      goal: openGoal({ of: 'ours', until: null, lateUntil: null, ...options }),
    })
  }

  /** Ends the whole run with the outcome the member has. */
  settle(): this {
    return this.put({ type: 'settle' })
  }

  /** The first hold is in place, and {@link lookAt} counts from there. */
  hold(): this {
    return this.look().answer().mark()
  }

  /** Looks every 100 ms until it is idle; seals on the way. */
  idle(): this {
    for (let i = 0; i < 600 && this.phase !== 'idle'; i += 1) {
      if (this.state.hold.pending !== null) this.answer()
      this.look({ after: 100 })
    }
    if (this.phase !== 'idle') throw new Error(`not idle: ${JSON.stringify(this.why)}`)
    return this.mark()
  }

  get phase(): DrainState['phase'] {
    return this.state.phase
  }

  get own(): AdminState | 'unknown' {
    return this.#member.own
  }

  get outcome(): string | null {
    return this.state.ending.ended?.outcome ?? null
  }

  get error(): DrainableError | null {
    return this.state.ending.ended?.error ?? null
  }

  /** The change under way. */
  get change(): Change {
    const { pending } = this.state.hold
    if (pending === null) throw new Error('no change is under way')
    return pending.change
  }

  /** What the last input sent, in words: `hold drain`, `restore drain to ready`. */
  get sent(): string | null {
    const apply = this.effects.find((effect) => effect.type === 'apply')
    return apply === undefined ? null : inWords(apply.change)
  }

  /** Everything that was sent, in words. */
  get sentSoFar(): readonly string[] {
    return this.changes.map(inWords)
  }

  /** Types of the events of the last input, `load` left out. */
  get said(): readonly string[] {
    return this.effects.flatMap((effect) =>
      effect.type === 'emit' && effect.event.type !== 'load' ? [effect.event.type] : [],
    )
  }

  /** All events of one type since the start. */
  all<T extends DrainEvent['type']>(type: T): readonly Extract<DrainEvent, { type: T }>[] {
    return this.heard.filter(
      (event): event is Extract<DrainEvent, { type: T }> => event.type === type,
    )
  }

  get why(): readonly Why[] {
    return explain(this.state, this.policy, this.now, WALL)
  }

  /** The codes of {@link why}. */
  get codes(): readonly string[] {
    return this.why.map(({ code }) => code)
  }

  /** A moment of the run's clock as events and proofs have it. */
  iso(at: number): string {
    return new Date(at + WALL).toISOString()
  }
}

type WithoutStamp<T> = T extends unknown ? Omit<T, 'at' | 'wall'> : never
export type FreeInput = WithoutStamp<Input>

function inWords(change: Change): string {
  if (change.kind === 'hold') return `hold ${change.to}`
  if (change.kind === 'restore') return `restore ${change.expect} to ${change.to}`
  return change.kind
}

/** A run that has not looked yet. */
export function started(options?: RunOptions): MemberRun {
  return new MemberRun(options)
}

/** A run whose first hold has just taken effect. */
export function held(options?: RunOptions): MemberRun {
  return started(options).hold()
}

/** A run whose member has just been found idle. */
export function idle(options?: RunOptions): MemberRun {
  return held(options).idle()
}
