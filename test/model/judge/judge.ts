import type { Change, ChangeResult, MemberReport, Proof } from 'drainable'
import type { BalancerProcess } from '../world/balancer-process.js'
import { isDrain, turnOfOpener, type Call, type Chain, type Verb } from '../user/drain-call.js'
import type { Delivery, ModelProvider } from '../world/model-provider.js'
import { judgeIdle } from './judge-idle.js'
import {
  cameBack,
  isLeftToOthers,
  judgeExecution,
  judgeUndone,
  looksLikeOurs,
  maybeFoundSo,
  setByOthers,
  Undos,
  type Undo,
} from './judge-undo.js'
import { savedMember } from './saved-ticket.js'
import { judgeSending } from './judge-sending.js'
import type { Samples } from './samples.js'
import type { SentChange } from './sent-change.js'
import { keyOf, RANK, type Member, type TruthListener } from '../world/member.js'
import type { Truth } from '../world/truth.js'
import type { UserProcess } from '../user/user-process.js'

/** One thing that must never be. */
export interface Fault {
  readonly rule: string
  readonly text: string
  readonly at: number
}

/** A member that was called sealed: nothing may reach it through these processes any more. */
interface Seal {
  readonly key: string
  readonly call: Call
  readonly at: number
  readonly processes: ReadonlySet<BalancerProcess>
  broken: boolean
}

/** Compares what the library says and does with the hidden truth. */
export class Judge implements TruthListener {
  readonly truth: Truth
  readonly samples: Samples
  readonly faults: Fault[] = []
  readonly calls: Call[] = []
  readonly sent: SentChange[] = []
  readonly undos = new Undos()
  readonly #seals: Seal[] = []

  constructor(truth: Truth, samples: Samples) {
    this.truth = truth
    this.samples = samples
  }

  get now(): number {
    return this.truth.clock.now()
  }

  fault(rule: string, text: string): void {
    this.truth.tell(`FAULT ${rule}: ${text}`)
    this.faults.push({ rule, text, at: this.now })
  }

  // --- calls ---

  opens(
    verb: Verb,
    process: UserProcess,
    provider: ModelProvider,
    keys: ReadonlySet<string>,
    chain?: Chain,
    processStartedAt = this.now,
  ): Call {
    const call: Call = {
      number: this.calls.length + 1,
      verb,
      process,
      provider,
      keys,
      chain,
      startedAt: this.now,
      ticketAt: undefined,
      processStartedAt,
      identities: new Map(),
      wishesDown: new Set(),
      holds: new Set(),
      kept: new Map(),
      heirOf: new Map(),
      letGo: new Map(),
      over: new Set(),
      yields: new Set(),
      refused: new Set(),
      endedAt: Infinity,
      releasedAt: Infinity,
      live: true,
      closedAt: Infinity,
      undoes: Infinity,
      undoesAt: Infinity,
    }
    this.truth.figures.add(`calls: ${verb}`)
    if (verb === 'undo') this.#undoes(call)
    if (verb === 'ready' || verb === 'undo') this.#letGo(call)
    if (verb === 'resumeDrain') this.truth.resumes(keys, chain?.id)
    for (const key of keys)
      if (isDrain(call) && chain !== undefined && savedMember(this, chain.id, key)?.held === true)
        call.kept.set(key, { until: Infinity, sure: false })
    this.calls.push(call)
    return call
  }

  /**
   * The later call wins: what was begun before it wishes these members down no more. An undo is about its own drain alone
   * (decision 1): under any other the member stays down.
   */
  #letGo(opening: Call, which: (call: Call) => boolean = () => true): void {
    for (const call of this.calls) {
      if (call.process !== opening.process || !which(call) || !opensFor(opening, call)) continue
      // what it overrules says so itself; one that fails before its first look overrules nothing
      for (const key of opening.keys) this.#mayWishNothing(call, key)
    }
  }

  /** A drain whose undo begins keeps nothing any more. */
  #undoes({ chain, process, keys }: Call): void {
    for (const call of this.calls)
      if (call.chain === chain && call.process === process)
        for (const key of keys) this.#keepsNoMore(call, key)
  }

  #keepsNoMore(call: Call, key: string): void {
    const kept = call.kept.get(key)
    if (kept !== undefined) kept.until = Math.min(kept.until, this.now)
  }

  /** It has said that it holds a member. */
  keeps(call: Call, key: string): void {
    const { chain, process, number } = call
    const isUndone = this.calls.some(
      (one) =>
        one.verb === 'undo' &&
        one.chain === chain &&
        one.process === process &&
        one.number > number,
    )
    if (isUndone || call.undoes !== Infinity) return
    const known = call.kept.get(key)
    if (known?.sure === true && known.until === Infinity) return
    call.kept.set(key, { until: Infinity, sure: true })
  }

  /** Drains of a process that were undone while this one held the member: what they had changed is for this one to undo. */
  ancestors(chain: Chain, process: UserProcess, key: string): Chain[] {
    const mine = this.calls.filter((call) => call.chain === chain && call.process === process)
    return mine.flatMap(({ heirOf }) => [...(heirOf.get(key) ?? [])])
  }

  /** Other drains of a process that have held a member since a moment, as far as they have said so. */
  keepersBeside(chain: Chain, process: UserProcess, key: string, since: number): Call[] {
    return this.calls.filter((call) => {
      if (call.process !== process || call.chain === chain || !isDrain(call)) return false
      const kept = call.kept.get(key)
      const until = Math.min(kept?.until ?? -Infinity, call.releasedAt, call.closedAt)
      return kept !== undefined && until >= since
    })
  }

  /** A call wishes a member down no more. */
  letGo(call: Call, key: string): void {
    this.#mayWishNothing(call, key)
    this.#keepsNoMore(call, key)
  }

  /**
   * What an operator has opened serves: its place is asked for again, and where the floor has none a drain with `onMinimum:
   * 'fail'` lets go. One that has its outcome says no more than that; one that holds it again says so.
   */
  asksAgain(call: Call, key: string): void {
    const { onMinimum = 'fail', keepReady = 1 } = call.chain?.wish.policy ?? {}
    if (onMinimum !== 'fail' || keepReady === 0) return
    this.#mayWishNothing(call, key)
    const kept = call.kept.get(key)
    if (kept !== undefined) call.kept.set(key, { ...kept, sure: false })
  }

  /** Whether a call still wishes a member down is left open; what it has said that it holds it holds. */
  #mayWishNothing(call: Call, key: string): void {
    call.wishesDown.delete(key)
    call.holds.delete(key)
    call.letGo.set(key, this.sent.length)
  }

  /** A ticket is forgotten: nothing may be left to undo. */
  ticketDropped(chain: Chain): void {
    for (const key of chain.keys) {
      const member = this.truth.member(key)
      // what a reload brought back after the last look can't be known
      const looks = this.calls.flatMap((call) =>
        call.live && call.chain === chain ? [this.lastLook(call.provider, key)?.readAt] : [],
      )
      const seen = Math.max(-Infinity, ...looks.map((readAt) => readAt ?? -Infinity))
      if (member.reloadedAt > seen) continue
      const ending = this.calls.findLast((call) => call.live && call.chain === chain)
      if (ending !== undefined && isLeftToOthers(this, ending, key)) continue
      if (this.heldBy(chain, member) && !maybeFoundSo(this, chain, member))
        this.fault('ticket', `${key}: the ticket of ${chain.id} is dropped while it is held`)
    }
  }

  /** A change was refused: whether who asked for it still wishes it is left open. */
  refused({ process, key }: SentChange): void {
    for (const call of this.calls) if (call.process === process) this.#mayWishNothing(call, key)
  }

  /** The user gives a drain up: it wishes nothing down any more, and undoes itself where that is asked for. */
  aborts(call: Call): void {
    for (const key of call.keys) this.letGo(call, key)
    if (call.chain?.wish.policy.onAbort !== 'restore' || call.undoes !== Infinity) return
    call.undoes = this.calls.length + 0.5
    call.undoesAt = this.now
    call.over.clear() // what it changed it may open, also where another call has taken the member
  }

  closes(call: Call): void {
    // What a drain that it has ended sent meanwhile was sent before it knew.
    if (call.live && (call.verb === 'ready' || call.verb === 'undo'))
      this.#letGo(call, (other) => other.number < call.number)
    call.live = false
    call.closedAt = Math.min(call.closedAt, this.now)
  }

  crashed(process: UserProcess): void {
    this.truth.figures.add('crashes')
    for (const call of this.calls) {
      if (call.process !== process || !call.live) continue
      this.closes(call)
      if (call.chain !== undefined) call.chain.crashed = true
    }
    for (const sent of this.sent) {
      if (sent.process === process && sent.answer === 'open') sent.answer = 'lost'
    }
  }

  /** Calls that look at or change something through a provider. */
  liveOn(provider: ModelProvider): Call[] {
    return this.calls.filter((call) => call.live && call.provider === provider)
  }

  /** Calls of a process that may change a member. */
  liveFor(process: UserProcess, key: string): Call[] {
    return this.calls.filter(
      (call) =>
        call.live &&
        call.process === process &&
        call.verb !== 'watch' &&
        call.keys.has(key) &&
        !call.over.has(key),
    )
  }

  // --- what is sent and done ---

  sends(process: UserProcess, provider: ModelProvider, change: Change): SentChange {
    const key = keyOf(change.ref)
    const calls = this.liveFor(process, key)
    const drains = calls.filter(({ verb }) => verb !== 'ready')
    const { begun } = this.truth.member(key)
    if (change.kind === 'hold')
      for (const { chain } of drains)
        if (chain !== undefined && !begun.has(chain.id)) begun.set(chain.id, this.now)
    const sent: SentChange = {
      number: this.sent.length + 1,
      key,
      change,
      process,
      provider,
      sentAt: this.now,
      knownUntil: this.lastLook(provider, key)?.readAt ?? -Infinity,
      authors: new Set(drains.flatMap(({ chain }) => chain?.id ?? [])),
      candidates: calls.filter((call) => call.provider === provider),
      byReady: calls.some(({ verb }) => verb === 'ready'),
      answer: 'open',
      answeredAt: Infinity,
      executedAt: Infinity,
      effect: undefined,
      alike: false,
    }
    this.truth.tell(`${process.name} sends #${sent.number} ${describeChange(change)}`)
    this.truth.figures.add(`sent: ${change.kind}`)
    judgeSending(this, sent, calls, provider)
    this.sent.push(sent)
    if (change.kind === 'restore') this.#overrule(sent, calls)
    return sent
  }

  /**
   * An opening sends: a drain that it is about, and that was begun before it, is over for that member, unless it has held
   * it no higher than that leads. `ready()` is about every drain, an undo about its own alone (decision 1). Where several
   * can have sent it, it was the first of them as far as can be told; a drain that undoes itself goes on with that.
   */
  #overrule(sent: SentChange, calls: readonly Call[]): void {
    const { key } = sent
    for (const call of calls) {
      const goesOn = call.undoes !== Infinity || call.yields.has(key) || this.mayBeKept(call, sent)
      if (isDrain(call) && call.number < openedFor(call, sent) && !goesOn) call.over.add(key)
    }
  }

  /** Whether a drain may have held a member no higher than an undo leads: then it goes on. */
  mayBeKept(call: Call, { key, change }: SentChange): boolean {
    if (!('to' in change) || RANK[change.to] < RANK.drain) return false
    const { to } = change
    const mine = this.sent.flatMap(({ key: of, change: hold, candidates, authors }) =>
      of === key &&
      hold.kind === 'hold' &&
      (candidates.includes(call) || authors.has(call.chain?.id ?? ''))
        ? [
            {
              low: RANK[hold.to] <= RANK[to],
              sure: candidates.length === 1 && candidates.includes(call),
            },
          ]
        : [],
    )
    // one that found the member drained has sent nothing
    return mine.some(({ low }) => low) || mine.every(({ sure }) => !sure)
  }

  executes(sent: SentChange, member: Member | undefined): void {
    if (member === undefined) return
    sent.alike = sent.change.kind === 'hold' && looksLikeOurs(this, sent, member)
    judgeExecution(this, sent, member)
  }

  executed(sent: SentChange, member: Member | undefined, result: ChangeResult): void {
    const now = member === undefined ? '' : ` -> ${member.own}`
    this.truth.tell(`#${sent.number} is carried out: ${result.status}${now}`)
    if (result.status !== 'applied' || member === undefined) return
    if (this.now > sent.answeredAt && sent.answer === 'lost')
      this.truth.figures.add('changes: done late')
    this.undos.afterwards(this, sent, member)
  }

  interfered(key: string): void {
    for (const seal of this.#seals) if (seal.key === key) seal.broken = true
  }

  arrived(key: string, process: BalancerProcess): void {
    for (const seal of this.#seals) {
      if (seal.key !== key || seal.broken || !seal.processes.has(process)) continue
      seal.broken = true
      if (seal.call.live && !this.#openedByUs(seal))
        this.fault('seal', `${key}: work through ${process.name} after it was called sealed`)
    }
  }

  /** Whether a call of the library has lowered it since, one of another process that came late too. */
  #openedByUs({ key, at, call }: Seal): boolean {
    return this.sent.some(
      (sent) =>
        sent.key === key &&
        sent.change.kind === 'restore' &&
        (sent.sentAt >= at || (sent.process !== call.process && sent.executedAt >= at)),
    )
  }

  // --- what is said ---

  /** A member is called idle, with a proof. */
  saysIdle(call: Call, key: string, proof: Proof, askedAt: number): void {
    this.truth.figures.add('idle said')
    judgeIdle(this, call, key, proof, Math.min(askedAt, this.#sealedIn(call, key)))
  }

  /** When the step began that closed the door of a member: the verdict that it closed over is from that step. */
  #sealedIn({ chain, verb }: Call, key: string): number {
    if (chain === undefined || verb !== 'stepDrain') return Infinity
    const seal = this.sent.findLast(
      (sent) =>
        sent.key === key &&
        sent.change.kind === 'hold' &&
        sent.change.to === 'maint' &&
        sent.authors.has(chain.id),
    )
    const step = seal?.candidates.find((candidate) => candidate.chain === chain)
    return step?.startedAt ?? Infinity
  }

  /** A drain has its outcome for a member. */
  saysEnded(call: Call, report: MemberReport): void {
    const key = keyOf(report.ref)
    const { outcome, verifiedIdle, proof } = report
    this.truth.figures.add(`outcome: ${outcome}`)
    if (outcome === 'idle' && verifiedIdle) {
      if (proof === undefined) this.fault('idle', `${key}: verified idle without a proof`)
      else judgeIdle(this, call, key, proof, call.startedAt, true)
      if (report.sealed) this.#sealed(call, key)
    }
  }

  /** A drain has ended: members that it releases are over for it, and so are those that it never held. */
  isOver(call: Call, { ref, outcome }: MemberReport): void {
    const key = keyOf(ref)
    call.endedAt = Math.min(call.endedAt, this.now)
    const letGo = ['overruled', 'refused', 'gone', 'aborted', 'restored'].includes(outcome)
    if (letGo) call.over.add(key)
    // one that ended before any hold of it was in place, as its ticket says, keeps nothing up
    const saved = call.chain === undefined ? undefined : savedMember(this, call.chain.id, key)
    if (letGo || saved?.holding === false) this.letGo(call, key)
    else if (!call.holds.has(key)) this.#mayWishNothing(call, key)
  }

  #sealed(call: Call, key: string): void {
    this.truth.figures.add('sealed said')
    const processes = new Set(this.truth.alive())
    const seen = this.lastLook(call.provider, key)?.readAt ?? Infinity
    const member = this.truth.member(key)
    // what was done after the last look can't be known
    const opened = this.sent.some(
      (sent) => sent.key === key && sent.change.kind === 'restore' && sent.answeredAt >= seen,
    )
    // it was said of the one that the drain had begun with
    const replaced = (member.identities.at(-1)?.from ?? 0) >= call.startedAt
    const broken = opened || replaced || member.foreignAt >= seen
    this.#seals.push({ key, call, at: this.now, processes, broken })
  }

  /** An undo has settled; `restored` are the members it says are as they were. */
  saysUndone(undo: Undo): void {
    judgeUndone(this, undo)
    const { chain } = undo
    if (chain !== undefined)
      for (const key of undo.restored) this.truth.isUndone(this.truth.member(key), chain.id)
    // those that it has overruled wish nothing down any more, also where nothing was to be opened
    for (const call of this.calls) {
      if (call.process !== undo.process || call.startedAt > undo.startedAt) continue
      if (chain !== undefined && call.chain !== chain) continue
      for (const key of undo.restored) this.letGo(call, key)
    }
    this.undos.add(undo)
  }

  // --- what the library can know ---

  looksAt(provider: ModelProvider, key: string): Delivery[] {
    return provider.deliveries.filter(({ snapshot }) =>
      snapshot.readings.some(({ ref }) => keyOf(ref) === key),
    )
  }

  lastLook(provider: ModelProvider, key: string): Delivery | undefined {
    return this.looksAt(provider, key).at(-1)
  }

  /** Up to when the library must know what happened to a member: read that long ago, in three looks. */
  knownUntil(provider: ModelProvider, key: string): number {
    return this.looksAt(provider, key).at(-3)?.readAt ?? -Infinity
  }

  /** Whether a member is held by changes of one drain, or of those that were left to it, above what it was before them. */
  heldBy(chain: Chain, member: Member): boolean {
    const heirs = this.calls.filter((call) => call.chain === chain)
    const left = heirs.flatMap(({ process, heirOf }) =>
      [...(heirOf.get(member.key) ?? [])].filter(
        () => member.setter.change?.process === process && process.alive,
      ),
    )
    return [chain, ...left].some((one) => this.#heldBy(one, member))
  }

  #heldBy(chain: Chain, member: Member): boolean {
    const { setter, own, bases, present } = member
    if (!present || setter.by !== 'library' || setter.change === undefined) return false
    const { authors, byReady } = setter.change
    const base = bases.get(chain.id)
    if (
      byReady ||
      base === undefined ||
      base === 'unclear' ||
      authors.size !== 1 ||
      !authors.has(chain.id)
    )
      return false
    // others had set the same before it was carried out: what was seen then counted as its effect
    if (setByOthers(setter.change, member, setter.at)) return false
    if (cameBack(this, chain, member)) return false
    return RANK[own] > RANK[base] && !this.undos.revived(chain, member)
  }

  drainsOf(process: UserProcess, key: string): Call[] {
    return this.liveFor(process, key).filter(isDrain)
  }
}

/** Whether a call that opens members opens what another one holds: \`ready()\` all of it, an undo that of its own drain. */
function opensFor(opening: Call, { chain }: Call): boolean {
  return opening.verb === 'ready' || (chain !== undefined && opening.chain === chain)
}

/**
 * The first turn of those that can have sent a restore and that open what a call holds; before all others where it may have
 * been one that does not.
 */
export function openedFor(call: Call, { candidates }: SentChange): number {
  const openers = candidates.filter((one) => turnOfOpener(one) !== Infinity)
  if (openers.length === 0 || !openers.every((one) => opensFor(one, call))) return -Infinity
  return Math.min(...openers.map(turnOfOpener))
}

export function describeChange(change: Change): string {
  const key = keyOf(change.ref)
  if (change.kind === 'hold') return `hold ${key} to ${change.to}`
  if (change.kind === 'restore') return `restore ${key} from ${change.expect} to ${change.to}`
  return `${change.kind} ${key}`
}
