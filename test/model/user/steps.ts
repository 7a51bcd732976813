import { stepDrain, type MemberRef, type Ticket } from 'drainable'
import { keyOf } from '../world/member.js'
import type { ModelProvider } from '../world/model-provider.js'
import { describe, type Desk } from './desk.js'
import type { Chain } from './drain-call.js'
import type { WaitingList } from './waiting-list.js'

/** Own limits of the library beside a deadline: a last look, a cut, a removal, the store; generous. */
export const SLACK = 25_000

/** The drains that a user makes step by step. */
export class Steps {
  readonly #desk: Desk
  readonly #waiting: WaitingList
  readonly #worksOn: Chain[]
  readonly #newProvider: () => ModelProvider
  #stepping = true
  /** Who makes the next step of a drain, where it is another process. */
  handsOver: (() => Steps | undefined) | undefined

  constructor(
    desk: Desk,
    waiting: WaitingList,
    worksOn: Chain[],
    newProvider: () => ModelProvider,
  ) {
    this.#desk = desk
    this.#waiting = waiting
    this.#worksOn = worksOn
    this.#newProvider = newProvider
  }

  /** The next step is made by another process, often on another machine, from the ticket alone. */
  #handOver(other: Steps, chain: Chain, failed: number): void {
    this.#desk.judge.truth.figures.add('steps handed to another process')
    this.#desk.tell(`${chain.id} is handed to ${other.#desk.process.name}`)
    this.#worksOn.splice(this.#worksOn.indexOf(chain), 1)
    other.#worksOn.push(chain)
    other.#step(chain, other.#newProvider(), undefined, this.#desk.judge.now, failed)
  }

  /** A drain by steps, from its beginning or its ticket. */
  begin(from?: Chain): void {
    const refs = this.#desk.members(2)
    const chain = from ?? this.#desk.newChain(refs)
    this.#desk.tell(`stepDrain ${chain.id} ${describe(chain)}`)
    chain.busy = true
    this.#worksOn.push(chain)
    // a provider object of its own: its looks are this chain's alone
    const provider = this.#newProvider()
    this.#step(chain, provider, from === undefined ? refs : undefined, this.#desk.judge.now, 0)
  }

  #step(
    chain: Chain,
    provider: ModelProvider,
    refs: readonly MemberRef[] | undefined,
    since: number,
    failures: number,
  ): void {
    const { process } = this.#desk
    if (!this.#stepping || !process.alive) {
      chain.busy = false
      return
    }
    const { keys, wish, saved } = chain
    // a step that failed leaves no ticket, and so no memory
    const knownSince = saved === undefined ? this.#desk.judge.now : since
    const call = this.#desk.judge.opens('stepDrain', process, provider, keys, chain, knownSince)
    this.#desk.judge.truth.figures.add('steps')
    const o = { clock: process.clock, onEvent: this.#desk.listen(call) }
    const promise = process.run(() =>
      saved === undefined
        ? stepDrain(provider, { target: refs ?? [], policy: { ...wish.policy, id: chain.id } }, o)
        : stepDrain(provider, JSON.parse(saved) as Ticket, o),
    )
    const again = (ms: number, failed: number): void => {
      const wait = Math.max(1, Math.min(ms, 1_000))
      this.#desk.judge.truth.clock.setTimeout(() => {
        const other = process.alive ? this.handsOver?.() : undefined
        if (other === undefined || other === this || chain.saved === undefined)
          this.#step(chain, provider, refs, knownSince, failed)
        else this.#handOver(other, chain, failed)
      }, wait)
    }
    this.#waiting.expect(
      `step of ${chain.id}`,
      process,
      SLACK * 3,
      promise,
      (step) => {
        chain.saved = JSON.stringify(step.ticket)
        chain.savedAt = this.#desk.judge.now
        for (const { ref, intended } of step.ticket.members) {
          const to = intended?.kind === 'hold' ? intended.to : undefined
          if (to !== undefined)
            chain.announced.push({ key: keyOf(ref), to, at: this.#desk.judge.now })
        }
        this.#desk.judge.closes(call)
        if (step.outcome === undefined) again(step.againIn, 0)
        else {
          chain.busy = false
          this.#desk.tell(`the steps of ${chain.id} end: ${step.outcome}`)
          this.#desk.judge.truth.figures.add(`steps end: ${step.outcome}`)
        }
      },
      () => {
        this.#desk.judge.closes(call)
        if (failures < 3) again(100, failures + 1)
        else chain.busy = false
      },
    )
  }

  stop(): void {
    this.#stepping = false
  }
}
