import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import type { Clock } from '../../provider/clock.js'
import type {
  AdminState,
  CallContext,
  Capabilities,
  Change,
  ChangeResult,
  LoadScope,
  MemberRef,
  PoolReading,
  PresentReading,
  Reading,
  Snapshot,
} from '../../provider/contract.js'
import { isDrainableError } from '../../provider/error.js'
import type { DrainableError, ErrorCode } from '../../provider/error.js'
import { formatRef, refKey } from '../../provider/member-ref.js'
import type { ContractHarness } from './harness.js'

/** How long a change may take to be seen, and a call to end, at time scale 1. */
const BOUND = 5_000
/** What is said where the product can't be reached. */
export const NETWORK: readonly ErrorCode[] = ['UNREACHABLE', 'CONNECTION_LOST', 'CALL_TIMEOUT']
/** Far from any real clock's figures, so that a provider that asks another clock is found out. */
const EPOCH = 4_000_000_000

/** The clock that the cases hand to the provider: real time, counted from somewhere else. */
export const clock: Clock = {
  now: (): number => EPOCH + performance.now(),
  setTimeout(fn: () => void, ms: number): () => void {
    const timer = setTimeout(fn, ms)
    return () => clearTimeout(timer)
  },
}

/** The parts of a harness that some cases need, and that not every product can give. */
export type Hook = Exclude<OptionalKeys<ContractHarness>, 'occupy' | 'timeScale'>

type OptionalKeys<T> = { [K in keyof T]-?: undefined extends T[K] ? K : never }[keyof T]

/** Ends a case that can't judge anything here, with the reason. */
export class Skipped extends Error {}

/** What a case works with: the harness, and the provider's verbs with their bookkeeping done. */
export class Bench {
  readonly harness: ContractHarness
  readonly capabilities: Capabilities
  readonly pool: string
  readonly a: MemberRef
  readonly b: MemberRef
  readonly #scale: number
  #observedAt = -Infinity

  constructor(harness: ContractHarness, capabilities: Capabilities) {
    this.harness = harness
    this.capabilities = capabilities
    this.pool = harness.pool
    this.a = harness.members[0]
    this.b = harness.members[1]
    this.#scale = harness.timeScale ?? 1
  }

  /** Describes once, as the core does, and hands over. */
  static async over(harness: ContractHarness): Promise<Bench> {
    const signal = new AbortController().signal
    const { capabilities } = await harness.provider.describe({ signal, clock })
    return new Bench(harness, capabilities)
  }

  get counts(): boolean {
    return this.capabilities.counts !== 'none'
  }

  /** The states this product has beyond ready, lowest first. */
  get levels(): readonly ('drain' | 'maint')[] {
    return (['drain', 'maint'] as const).filter((s) => this.capabilities.ladder.includes(s))
  }

  /** The lowest state that takes no new work. */
  get level(): 'drain' | 'maint' {
    const [lowest] = this.levels
    assert.ok(lowest, 'the ladder has a state beyond ready')
    return lowest
  }

  /** A hook of the harness; without it the case is skipped. */
  hook<Name extends Hook>(name: Name): NonNullable<ContractHarness[Name]> {
    const { harness } = this
    const hook = harness[name] as ((...given: unknown[]) => unknown) | undefined
    if (hook === undefined) throw new Skipped(`the harness has no ${name}`)
    // Called on the harness: a hook may be a method.
    return hook.bind(harness) as NonNullable<ContractHarness[Name]>
  }

  /** Ends the case as skipped: there is nothing that it could judge. */
  skip(reason: string): never {
    throw new Skipped(reason)
  }

  now(): number {
    return clock.now()
  }

  /** Milliseconds, made longer for a slow product. */
  scaled(ms: number): number {
    return ms * this.#scale
  }

  ctx(signal = new AbortController().signal, result?: CallContext['result']): CallContext {
    return { signal, clock, ...(result !== undefined && { result }) }
  }

  /** Keeps the product's own floor between two looks. */
  async observe(refs: readonly MemberRef[] | 'all', signal?: AbortSignal): Promise<Snapshot> {
    const rest = this.#observedAt + (this.capabilities.minInterval ?? 0) - performance.now()
    if (rest > 0) await sleep(rest)
    this.#observedAt = performance.now()
    return this.within(this.harness.provider.observe(refs, this.ctx(signal)), 'observe')
  }

  async read(ref: MemberRef): Promise<Reading> {
    return readingOf(await this.observe([ref]), ref)
  }

  async present(ref: MemberRef): Promise<PresentReading> {
    return thereIs(await this.read(ref))
  }

  async pools(): Promise<PoolReading> {
    const { pools } = await this.observe([this.a])
    const found = pools.find(({ pool }) => pool === this.pool)
    assert.ok(found, `the pool ${this.pool} is listed in the snapshot of one of its members`)
    return found
  }

  async apply(
    changes: readonly Change[],
    result?: CallContext['result'],
  ): Promise<readonly ChangeResult[]> {
    const call = this.harness.provider.apply(changes, this.ctx(undefined, result))
    const results = await this.within(call, 'apply')
    assertSame(results.length, changes.length, 'one result per change')
    for (const [i, { ref }] of changes.entries()) {
      const found = formatRef(results[i]?.ref ?? ref)
      assertSame(found, formatRef(ref), 'results come in the order of changes')
    }
    return results
  }

  async applyOne(change: Change): Promise<ChangeResult> {
    const [result] = await this.apply([change])
    assert.ok(result)
    return result
  }

  /** A change that must be done. */
  async done(change: Change): Promise<ChangeResult> {
    const result = await this.applyOne(change)
    assert.ok(succeeded(result), `${change.kind} is done, not: ${shown(result)}`)
    return result
  }

  /**
   * A change of something that is not there. A throw is borne with here, because one change is all
   * that such a call holds; what must not be said is that it was done.
   */
  async refusesAbsent(change: Change): Promise<void> {
    const what = `${change.kind} of ${JSON.stringify(formatRef(change.ref).slice(0, 60))}`
    const end = await outcome(this.applyOne(change))
    if ('error' in end) {
      assert.ok(!(end.error instanceof assert.AssertionError), `${what}: ${String(end.error)}`)
      return
    }
    const codes = ['NOT_FOUND', 'INVALID_OPTIONS', 'REJECTED', 'CONFLICT'] as const
    assertRejected(end.value, codes, what)
  }

  /** Raises the member and waits until that shows. */
  async hold(ref: MemberRef, to: 'drain' | 'maint' = this.level): Promise<PresentReading> {
    const { identity } = await this.present(ref)
    await this.done({ kind: 'hold', ref, to, identity })
    return this.untilOwn(ref, to)
  }

  /** Puts a request on the member and waits until it is counted. */
  async occupy(ref: MemberRef): Promise<() => Promise<void>> {
    const end = await this.harness.occupy?.(ref)
    assert.ok(end, 'a harness can occupy a member, unless its provider counts nothing')
    await this.untilReading(ref, 'the request is counted', (r) => work(r) > 0)
    return end
  }

  async untilOwn(ref: MemberRef, own: AdminState): Promise<PresentReading> {
    const reading = await this.untilReading(ref, `reads ${own}`, (r) => thereIs(r).own === own)
    return thereIs(reading)
  }

  untilReading(ref: MemberRef, what: string, accept: (r: Reading) => boolean): Promise<Reading> {
    let last = ''
    const look = async (): Promise<Reading | undefined> => {
      const reading = await this.read(ref)
      last = inWords(reading)
      return accept(reading) ? reading : undefined
    }
    return this.until(`${formatRef(ref)}: ${what}`, look, () => `; found ${last}`)
  }

  /**
   * Looks until there is an answer; no fixed wait.
   *
   * @param found - what was seen last, for the failure
   */
  async until<T>(
    what: string,
    look: () => Promise<T | undefined>,
    found: () => string = () => '',
  ): Promise<T> {
    const bound = this.scaled(BOUND) + this.capabilities.freshness * 2
    const deadline = performance.now() + bound
    for (;;) {
      const answer = await look()
      if (answer !== undefined) return answer
      assert.ok(performance.now() < deadline, `within ${bound} ms: ${what}${found()}`)
      await sleep(this.scaled(20))
    }
  }

  /** Looks for a while that nothing happens: for what must not follow later either. */
  async stays(what: string, holds: () => Promise<boolean>): Promise<void> {
    const until = performance.now() + this.scaled(150) + this.capabilities.freshness
    do {
      assert.ok(await holds(), what)
      await sleep(this.scaled(40))
    } while (performance.now() < until)
  }

  /**
   * A call that does not end is a failure with a name, not a test run that hangs. The time is counted in beats of this
   * process: one that stood still for a second, as the call did too, is only a beat late.
   */
  async within<T>(call: Promise<T>, what: string, ms = 3 * BOUND): Promise<T> {
    const timer = new AbortController()
    const bound = this.scaled(ms)
    const late = beats(bound, timer.signal).then(() =>
      assert.fail(`${what} ends within ${bound} ms`),
    )
    late.catch(() => undefined)
    try {
      return await Promise.race([call, late])
    } finally {
      timer.abort()
    }
  }
}

const BEAT = 50

async function beats(ms: number, signal: AbortSignal): Promise<void> {
  for (let left = ms; left > 0; left -= BEAT)
    await sleep(Math.min(BEAT, left), undefined, { signal })
}

/** The one reading of a ref in a snapshot. */
export function readingOf(snapshot: Snapshot, ref: MemberRef): Reading {
  const found = snapshot.readings.find((r) => refKey(r.ref) === refKey(ref))
  assert.ok(found, `${formatRef(ref)} was asked for and is answered`)
  return found
}

export function thereIs(reading: Reading): PresentReading {
  assert.ok(reading.present, `${formatRef(reading.ref)} is there`)
  return reading
}

/** Work that the readable scopes hold. */
export function work(reading: Reading): number {
  return reading.scopes.reduce((sum, s) => sum + (s.state === 'read' ? s.active + s.queued : 0), 0)
}

/** It holds some; a count of 0 is told. */
export function assertWork(reading: Reading, what: string): void {
  assert.ok(work(reading) > 0, `${what}: expected work in flight or queued, found ${work(reading)}`)
}

/** The scopes that can be told apart, and compared, by name. */
export function byName(scopes: readonly LoadScope[]): ReadonlyMap<string, LoadScope> {
  return new Map(scopes.map((scope) => [scope.scope, scope]))
}

export function succeeded(result: ChangeResult | undefined): boolean {
  return result?.status === 'applied' || result?.status === 'unchanged'
}

/** As `assert.equal`, whose message of one's own would hide what was found. */
export function assertSame(found: unknown, expected: unknown, what: string): void {
  const words = [expected, found].map((each) =>
    each instanceof Error ? String(each) : inspect(each),
  )
  assert.equal(found, expected, `${what}: expected ${words.join(', found ')}`)
}

/** Every change is done; the error of each that is not is told. */
export function assertDone(results: readonly ChangeResult[], what: string): void {
  const others = results.filter((result) => !succeeded(result)).map(shown)
  assert.ok(others.length === 0, `${what}, not: ${others.join('; ')}`)
}

/** A refusal as a value, with one of these codes. */
export function assertRejected(
  result: ChangeResult,
  codes: readonly ErrorCode[],
  what: string,
): DrainableError {
  if (result.status !== 'rejected') return assert.fail(`${what} is rejected, not ${shown(result)}`)
  const { error } = result
  assert.ok(isDrainableError(error), `${what}: the error is a DrainableError`)
  assert.ok(codes.includes(error.code), `${what}: ${codes.join(' or ')}, not ${shown(result)}`)
  assert.ok(error.message.length >= 10, `${what}: the message says what is wrong`)
  return error
}

/** A refusal for good of what the product can't do. */
export function assertUnsupported(result: ChangeResult, what: string): void {
  const error = assertRejected(result, ['UNSUPPORTED'], what)
  assertSame(error.retryable, false, `${what}: trying again does not help: retryable`)
}

/** How a call ended, whichever way. */
export async function outcome<T>(call: Promise<T>): Promise<{ value: T } | { error: unknown }> {
  try {
    return { value: await call }
  } catch (error) {
    return { error }
  }
}

/** A reading in one line. */
function inWords(reading: Reading): string {
  const loads = reading.scopes.map((scope) =>
    scope.state === 'read'
      ? `${scope.scope} with ${scope.active} active and ${scope.queued} queued`
      : `${scope.scope} ${scope.state}`,
  )
  const own = reading.present ? reading.own : 'no such member'
  return [own, ...loads].join(', ')
}

function shown(result: ChangeResult): string {
  return 'error' in result
    ? `${result.status} (${result.error.code}: ${result.error.message})`
    : result.status
}
