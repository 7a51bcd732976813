import type { DrainEvent, Outcome } from 'drainable'
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
import { openGoal, type Goal, type OpenOptions } from '../../../../src/core/member/wanted.js'
import type { Effect, FreeInput, LookInput } from '../../../../src/core/member/input.js'
import {
  type Claim,
  emptyLedger,
  type Facts,
  type Ledger,
  type MachinePolicy,
  type MemberRecord,
  newClaim,
  newRecord,
  NO_FACTS,
} from '../../../../src/core/member/record.js'
import { claimedOf, type ClaimedMember } from '../../../../src/core/member/claimed.js'
import { step } from '../../../../src/core/member/step.js'
import { explain } from '../../../../src/core/member/said/why.js'

const WEB1 = { pool: 'web', member: 'web1' }
/** The provider object that looks. */
const VIEW = 1
/** Where the clock begins. */
const START = 1_000
/** Epoch milliseconds minus the clock. */
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

/** A policy, capabilities, and what it begins with, in one list. */
export type RunOptions = Partial<Omit<MachinePolicy, 'capabilities'>> &
  Partial<Capabilities> & {
    readonly goal?: Goal
    /** Milliseconds until the deadline. Default: none. */
    readonly timeout?: number
    readonly own?: AdminState
    readonly present?: Partial<PresentReading>
    /** Processes beside the default one, or other figures for it (`w1`). */
    readonly scopes?: Readonly<Record<string, Figures>>
    /** Whether a change waits for its ticket until {@link MemberRun.written}. */
    readonly waitsForTicket?: boolean
  }

/** What the balancer says of one process; `behind`: its numbers are so much older than the others'. */
type Figures = Partial<LoadScope> & { readonly behind?: number }

/** How one look goes. All times by the clock. */
interface LookOptions {
  /** Milliseconds from now until the look is asked for. */
  readonly after?: number
  /** Milliseconds until the answer is there. */
  readonly took?: number
  /** When it was asked for, where that was before now. */
  readonly asked?: number
  /** The provider object that looks. Default: that of the claims. */
  readonly view?: number
  /** How old its numbers are when it is asked for. */
  readonly stale?: number
  readonly ended?: LookInput['ended']
  /** Why the pool has too few serving members now. */
  readonly floor?: DrainableError
  readonly random?: number
}

function policyOf(options: RunOptions): MachinePolicy {
  const policy = pick(options, POLICY)
  return { ...POLICY, ...policy, capabilities: { ...CAPABILITIES, ...pick(options, CAPABILITIES) } }
}

function pick<T extends object>(from: object, keys: T): Partial<T> {
  return Object.fromEntries(Object.entries(from).filter(([key]) => key in keys)) as Partial<T>
}

/** A failure of a balancer. */
export function failure(code: ErrorCode = 'REJECTED', retryable?: boolean): DrainableError {
  const words = `the balancer says ${code}`
  return new DrainableError(code, words, retryable === undefined ? {} : { retryable })
}

/**
 * The record of one member, stepped by hand: a picture of the balancer that looks are taken of, a clock, and what went in
 * and came out. It has one claim, unless a test lays another: then that one is meant from there on.
 */
export class MemberRun {
  record: MemberRecord
  now = START
  /** What {@link lookAt} counts from. */
  origin = START
  /** Of the last input. */
  effects: readonly Effect[] = []
  /** Every event since the start. */
  readonly heard: DrainEvent[] = []
  /** Every change that was sent. */
  readonly changes: Change[] = []
  readonly #policy: MachinePolicy
  readonly #waitsForTicket: boolean
  #claims = 0
  #member: Omit<PresentReading, 'ref' | 'present' | 'scopes'>
  #present = true
  readonly #scopes = new Map<string, LoadScope & { readonly behind?: number }>()

  constructor(options: RunOptions = {}) {
    this.#policy = policyOf(options)
    this.#waitsForTicket = options.waitsForTicket === true
    this.#member = {
      identity: '10.0.0.1:80',
      own: options.own ?? 'ready',
      serves: true,
      health: 'unchecked',
      ...options.present,
    }
    this.scope('w1')
    for (const [name, figures] of Object.entries(options.scopes ?? {})) this.scope(name, figures)
    this.record = newRecord(WEB1, START)
    this.lay(options.goal ?? { kind: 'drain' }, options.timeout)
  }

  /** Lays one more claim, and means it from now on. `left`: what its ticket knows of our changes. */
  lay(goal: Goal, timeout?: number, left?: Partial<Ledger>): this {
    this.#claims += 1
    const claim = newClaim({
      id: this.#claims,
      view: VIEW,
      goal,
      policy: this.#policy,
      startedAt: this.now,
      deadline: timeout === undefined ? null : this.now + timeout,
    })
    if (left === undefined) return this.put({ type: 'laid', claim })
    return this.put({ type: 'laid', claim, left: { ledger: { ...emptyLedger(START), ...left } } })
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
  look(options: LookOptions = {}): this {
    const { after = 10, took = 0, asked, view = VIEW, stale = 0 } = options
    const { ended, floor, random = 0 } = options
    this.now += after
    const askedAt = asked ?? this.now
    const reading = this.reading(this.now - stale)
    this.now += took
    return this.put({
      type: 'look',
      view,
      reading,
      askedAt,
      took,
      ended,
      random,
      floor: new Map([[this.claim.id, floor ?? null]]),
    })
  }

  /** One look, that long after the hold took effect (or {@link mark}). */
  lookAt(offset: number, options: LookOptions = {}): this {
    return this.look({ ...options, after: this.origin + offset - this.now })
  }

  /** A look every `step` milliseconds, for that long. */
  looks(ms: number, each = 100): this {
    const until = this.now + ms
    while (this.now < until) this.look({ after: Math.min(each, until - this.now) })
    return this
  }

  /** A look that failed. */
  fail(error: DrainableError = failure('CONNECTION_LOST'), after = 10): this {
    this.now += after
    return this.put({ type: 'unread', view: VIEW, error, askedAt: this.now })
  }

  /** The ticket of the change that waited is written: it is about to be sent. */
  written(): this {
    return this.put({ type: 'sending', change: this.change })
  }

  /** The answer to the change under way; the balancer does what it says. */
  answer(status: 'applied' | 'unchanged' = 'applied', more: Partial<ChangeResult> = {}): this {
    const { change } = this
    if (status === 'applied') this.#carryOut(change)
    return this.#result({ ref: WEB1, status, ...more } as ChangeResult)
  }

  refuse(error: DrainableError = failure()): this {
    return this.#result({ ref: WEB1, status: 'rejected', error })
  }

  /** The answer is lost; `done` says whether the balancer carried the change out. */
  lose(done: 'done' | 'not done' = 'not done'): this {
    const { change } = this
    if (done === 'done') this.#carryOut(change)
    return this.#result({ ref: WEB1, status: 'unknown', error: failure('CALL_TIMEOUT') })
  }

  #carryOut(change: Change): void {
    const lowers = change.kind === 'hold' && this.own === 'maint'
    if ('to' in change && !lowers) this.set({ own: change.to })
    if (change.kind === 'remove') this.vanish()
  }

  #result(result: ChangeResult): this {
    return this.put({ type: 'answer', change: this.change, result })
  }

  put(input: FreeInput): this {
    const taken = step(this.record, { ...input, at: this.now, wall: this.now + WALL })
    this.record = taken.record
    this.effects = taken.effects
    for (const effect of taken.effects) {
      if (effect.type === 'emit') this.heard.push(effect.event)
      if (effect.type === 'send') this.changes.push(effect.change)
    }
    const sends = taken.effects.some(({ type }) => type === 'send')
    if (!sends || this.#waitsForTicket) return this
    this.written()
    this.effects = [...taken.effects, ...this.effects]
    return this
  }

  /** The call of the claim ends it. */
  end(outcome: Outcome): this {
    return this.put({ type: 'end', claim: this.claim.id, outcome })
  }

  /** The call of the claim undoes it. */
  open(options: Partial<OpenOptions> = {}): this {
    const goal = openGoal({ of: 'ours', since: 0, until: null, lateUntil: null, ...options })
    return this.put({ type: 'undo', claim: this.claim.id, goal })
  }

  /** The whole call has the outcome that the member has. */
  settle(): this {
    return this.put({ type: 'settle', claim: this.claim.id })
  }

  /** The first hold is in place, and {@link lookAt} counts from there. */
  hold(): this {
    return this.look().answer().mark()
  }

  /** Looks every 100 ms until it is idle; seals on the way. */
  idle(): this {
    for (let i = 0; i < 600 && this.phase !== 'idle'; i += 1) {
      if (this.ledger.pending !== null) this.answer()
      this.look({ after: 100 })
    }
    if (this.phase !== 'idle') throw new Error(`not idle: ${JSON.stringify(this.why)}`)
    return this.mark()
  }

  /** The claim that was laid last. */
  get claim(): Claim {
    const claim = this.record.claims.find(({ id }) => id === this.#claims)
    if (claim === undefined) throw new Error('the claim is gone')
    return claim
  }

  get claimed(): ClaimedMember {
    return claimedOf(this.record, this.claim)
  }

  get ledger(): Ledger {
    return this.record.ledger
  }

  get facts(): Facts {
    return this.record.views.get(VIEW) ?? NO_FACTS
  }

  get proof(): Claim['proof'] {
    return this.claim.proof
  }

  get phase(): Claim['phase'] {
    return this.claim.phase
  }

  get own(): AdminState | 'unknown' {
    return this.#member.own
  }

  get outcome(): string | null {
    return this.claim.ending.ended?.outcome ?? null
  }

  get error(): DrainableError | null {
    return this.claim.ending.ended?.error ?? null
  }

  /** The change under way. */
  get change(): Change {
    const { pending } = this.ledger
    if (pending === null) throw new Error('no change is under way')
    return pending.change
  }

  /** What the last input sent, in words: `hold drain`, `restore drain to ready`. */
  get sent(): string | null {
    const sent = this.effects.find((effect) => effect.type === 'send')
    return sent === undefined ? null : inWords(sent.change)
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
    return explain(this.claimed, this.now, WALL)
  }

  /** The codes of {@link why}. */
  get codes(): readonly string[] {
    return this.why.map(({ code }) => code)
  }

  /** A moment of the clock as events and proofs have it. */
  iso(at: number): string {
    return new Date(at + WALL).toISOString()
  }
}

function inWords(change: Change): string {
  if (change.kind === 'hold') return `hold ${change.to}`
  if (change.kind === 'restore') return `restore ${change.expect} to ${change.to}`
  return change.kind
}

/** A member that was not looked at yet. */
export function started(options?: RunOptions): MemberRun {
  return new MemberRun(options)
}

/** A member whose first hold has just taken effect. */
export function held(options?: RunOptions): MemberRun {
  return started(options).hold()
}

/** A member that has just been found idle. */
export function idle(options?: RunOptions): MemberRun {
  return held(options).idle()
}
