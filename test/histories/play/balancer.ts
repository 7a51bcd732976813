import {
  DrainableError,
  type Capabilities,
  type Change,
  type ChangeResult,
  type Clock,
  type ErrorCode,
  type LoadScope,
  type MemberRef,
  type PresentReading,
  type Snapshot,
} from 'drainable'
import { fakeProvider, type FakeClock, type FakeProvider, type FakeScope } from 'drainable/testing'
import { nameOf } from './names.js'
import { sayChange } from './say.js'

/** What a balancer is made of. */
export interface BalancerOptions {
  readonly name: string
  readonly members: readonly MemberRef[]
  readonly processes: readonly string[]
  readonly capabilities: Partial<Capabilities>
  readonly whenNone?: 'refuse' | 'spill' | 'all' | 'unknown'
}

/** How changes are answered: at once and truly, when the history says so, by a refusal, or never. */
export type Answers = { readonly how: 'come' | 'wait' | 'lost' } | Refusal
interface Refusal {
  readonly how: 'refused'
  readonly code: ErrorCode
}

/** One change that was sent and has no answer yet. */
interface Sent {
  readonly change: Change
  /** The process that has sent it. */
  readonly by: string
  /** What became of it, once the balancer has carried it out. */
  result?: ChangeResult
  readonly answer: (result: ChangeResult) => void
  readonly lose: () => void
}

/** A balancer that shows and answers what the history says: an in-memory one that keeps the contract stands behind it. */
export class Balancer {
  readonly name: string
  readonly fake: FakeProvider
  answers: Answers = { how: 'come' }
  /** What a look says beside what is true. */
  readonly shown = new Map<string, Partial<PresentReading>>()
  /** What a look says of a process beside what is true. */
  readonly says = new Map<string, Partial<LoadScope>>()
  readonly #clock: Clock
  readonly #processes: Map<string, FakeScope>
  /** How looks go; those that hang wait for another word. */
  #looks: 'come' | 'fail' | 'hang' = 'come'
  readonly #hanging = new Set<() => void>()
  readonly #work = new Map<string, (() => void)[]>()
  readonly #waiting = new Set<Sent>()
  /** Sent, without an answer, and not carried out yet. */
  #lost: Change[] = []
  countsArrivals = true

  constructor(clock: FakeClock, options: BalancerOptions) {
    this.name = options.name
    this.#clock = clock
    this.#processes = new Map(options.processes.map((scope) => [scope, { scope }]))
    const pools: Record<string, string[]> = {}
    for (const { pool, member } of options.members) (pools[pool] ??= []).push(member)
    this.fake = fakeProvider({
      pools,
      clock,
      scopes: options.processes,
      capabilities: { survivesReload: false, ...options.capabilities },
      ...(options.whenNone === undefined ? {} : { whenNone: options.whenNone }),
    })
  }

  get looks(): 'come' | 'fail' | 'hang' {
    return this.#looks
  }

  set looks(how: 'come' | 'fail' | 'hang') {
    this.#looks = how
    if (how !== 'hang') for (const goOn of this.#hanging) goOn()
  }

  /** A look that hangs is answered once looks come again, if it was not given up. */
  async untilLooksGo(signal: AbortSignal): Promise<void> {
    if (this.#looks !== 'hang') return
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    const goOn = (): void => resolve(undefined)
    const stop = (): void => reject(signal.reason)
    this.#hanging.add(goOn)
    signal.addEventListener('abort', stop, { once: true })
    try {
      await promise
    } finally {
      this.#hanging.delete(goOn)
      signal.removeEventListener('abort', stop)
    }
  }

  /** What a look shows, as the contract has it. */
  edit(snapshot: Snapshot, sees: readonly string[] | undefined): Snapshot {
    return {
      ...snapshot,
      readings: snapshot.readings.map((reading) => {
        const scopes = reading.scopes
          .filter(({ scope }) => sees?.includes(scope) ?? true)
          .map((scope) => (this.countsArrivals ? scope : withoutArrivals(scope)))
          .map((scope) => ({ ...scope, ...this.says.get(scope.scope) }))
        if (!reading.present) return { ...reading, scopes }
        return { ...reading, scopes, ...this.shown.get(nameOf(reading.ref)) }
      }),
    }
  }

  /** Takes the changes of one call. */
  async take(
    changes: readonly Change[],
    by: string,
    signal: AbortSignal,
    result: ((index: number, result: ChangeResult) => void) | undefined,
  ): Promise<readonly ChangeResult[]> {
    const { answers } = this
    switch (answers.how) {
      case 'come':
        return this.#carryOut(changes)
      case 'refused':
        return changes.map((change) => refused(change, answers.code))
      case 'lost':
        this.#lost.push(...changes)
        throw connectionLost()
      default:
        return this.#wait(changes, by, signal, result)
    }
  }

  /** The word of the history about a change that waits: of that member, or the oldest. */
  async answer(name: string | undefined, words: readonly string[]): Promise<void> {
    const sent = this.#find(name)
    const [how = 'applied', code = 'REJECTED'] = words
    if (how === 'refused') sent.answer(refused(sent.change, code as ErrorCode))
    else if (how === 'unknown') {
      this.#lost.push(sent.change)
      const error = connectionLost()
      sent.answer({ ref: sent.change.ref, status: 'unknown', error })
    } else sent.answer(await this.#resultOf(sent))
  }

  /** Carries out what waits, and says nothing yet. */
  async carryOut(name: string | undefined): Promise<void> {
    await this.#resultOf(this.#find(name))
  }

  /** The connection breaks; what the call asked for is carried out by now, later, or never. */
  async lose(name: string | undefined): Promise<void> {
    this.#find(name).lose()
  }

  /** The process is dead: what it has sent can still be carried out, and nobody waits for the answer. */
  loseCaller(name: string): void {
    for (const sent of [...this.#waiting]) if (sent.by === name) sent.lose()
  }

  /** Every change that waits is answered, and from now on each is at once. */
  async answerAll(): Promise<void> {
    this.answers = { how: 'come' }
    for (const sent of [...this.#waiting]) sent.answer(await this.#resultOf(sent))
  }

  /** A change without an answer is carried out after all. */
  async land(name: string | undefined): Promise<string> {
    const at = this.#lost.findIndex(({ ref }) => name === undefined || nameOf(ref) === name)
    const change = this.#lost[at]
    if (change === undefined) throw new Error(`no lost change ${name ?? ''} can land`)
    this.#lost = this.#lost.filter((_, i) => i !== at)
    const [result] = await this.#carryOut([change])
    return `${sayChange(change)}: ${result?.status ?? 'nothing'}`
  }

  work(kind: 'occupy' | 'queue', ref: MemberRef, count: number, process?: string): void {
    const ends = this.#endsOf(kind, ref)
    for (let i = 0; i < count; i += 1) ends.push(this.fake[kind](ref, 1, process))
  }

  endWork(kind: 'occupy' | 'queue', ref: MemberRef, count = Infinity): void {
    for (const end of this.#endsOf(kind, ref).splice(0, count)) end()
  }

  setProcess(scope: FakeScope): void {
    if (scope.state === 'ended') this.#processes.delete(scope.scope)
    else this.#processes.set(scope.scope, { ...this.#processes.get(scope.scope), ...scope })
    this.fake.setScopes([...this.#processes.values()])
  }

  /** Puts a member on the address of another one: both are one server. */
  async share(ref: MemberRef, other: MemberRef): Promise<void> {
    const signal = new AbortController().signal
    const { readings } = await this.fake.observe([other], { signal, clock: this.#clock })
    const [found] = readings
    if (found?.present !== true || found.address === undefined || found.port === undefined)
      throw new Error(`${nameOf(other)} has no address`)
    const { address, port } = found
    this.fake.setBehind(ref, 'gone')
    await this.#carryOut([{ ref, kind: 'add', address, port }])
  }

  reload(cut: boolean): void {
    this.fake.reload({ cut })
  }

  /** What this balancer shows of its members now. */
  async look(names: readonly string[]): Promise<readonly string[]> {
    const signal = new AbortController().signal
    const raw = await this.fake.observe('all', { signal, clock: this.#clock })
    const { readings } = this.edit(raw, undefined)
    return readings
      .filter(({ ref }) => names.length === 0 || names.includes(nameOf(ref)))
      .map((reading) => {
        const state = reading.present ? reading.own : 'gone'
        const load = reading.scopes.map(({ scope, state: of, active, queued }) =>
          of === 'read' ? `${scope} ${active}+${queued}` : `${scope} ${of}`,
        )
        return `${nameOf(reading.ref)} ${[state, ...load].join(', ')}`
      })
  }

  #endsOf(kind: 'occupy' | 'queue', ref: MemberRef): (() => void)[] {
    const key = `${kind} ${nameOf(ref)}`
    const ends = this.#work.get(key) ?? []
    this.#work.set(key, ends)
    return ends
  }

  #find(name: string | undefined): Sent {
    const found = [...this.#waiting].find(
      ({ change }) => (name ?? nameOf(change.ref)) === nameOf(change.ref),
    )
    if (found === undefined) throw new Error(`no change ${name ?? ''} waits for an answer`)
    return found
  }

  async #resultOf(sent: Sent): Promise<ChangeResult> {
    sent.result ??= (await this.#carryOut([sent.change]))[0]!
    return sent.result
  }

  #carryOut(changes: readonly Change[]): Promise<readonly ChangeResult[]> {
    return this.fake.apply(changes, { signal: new AbortController().signal, clock: this.#clock })
  }

  #wait(
    changes: readonly Change[],
    by: string,
    signal: AbortSignal,
    result: ((index: number, result: ChangeResult) => void) | undefined,
  ): Promise<readonly ChangeResult[]> {
    return new Promise((resolve, reject) => {
      const results: (ChangeResult | undefined)[] = changes.map(() => undefined)
      const mine: Sent[] = []
      const end = (how: () => void): void => {
        signal.removeEventListener('abort', giveUp)
        for (const sent of mine.splice(0)) {
          if (!this.#waiting.delete(sent)) continue
          if (sent.result === undefined) this.#lost.push(sent.change)
        }
        how()
      }
      const giveUp = (): void => end(() => reject(signal.reason))
      changes.forEach((change, index) => {
        const sent: Sent = {
          change,
          by,
          answer: (one) => {
            this.#waiting.delete(sent)
            results[index] = one
            result?.(index, one)
            if (results.every((each) => each !== undefined)) end(() => resolve(results))
          },
          lose: () => end(() => reject(connectionLost())),
        }
        mine.push(sent)
        this.#waiting.add(sent)
      })
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }
}

function withoutArrivals(scope: LoadScope): LoadScope {
  const rest: { -readonly [K in keyof LoadScope]: LoadScope[K] } = { ...scope }
  delete rest.arrivals
  return rest
}

/** A refusal that passes by itself can be tried again; any other is final. */
function refused({ ref }: Change, code: ErrorCode): ChangeResult {
  const error = new DrainableError(code, `${nameOf(ref)}: the balancer refuses`, { ref })
  return { ref, status: 'rejected', error }
}

function connectionLost(): DrainableError {
  return new DrainableError('CONNECTION_LOST', 'the connection broke before the answer')
}
