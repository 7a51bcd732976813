import type { DrainEvent, DrainReport, MemberRef, Policy, TicketStore } from 'drainable'
import type { Judge } from '../judge/judge.js'
import type { Random } from '../random.js'
import { keyOf } from '../world/member.js'
import type { ModelProvider } from '../world/model-provider.js'
import type { Call, Chain } from './drain-call.js'
import { randomPolicy } from './random-policy.js'
import type { UserProcess } from './user-process.js'
import { words } from './waiting-list.js'

/** What a user has at hand for every call: members to take, a place for tickets, what is noted of events. */
export class Desk {
  readonly process: UserProcess
  readonly judge: Judge
  readonly #random: Random
  readonly #chains: Chain[]

  constructor(process: UserProcess, judge: Judge, random: Random, chains: Chain[]) {
    this.process = process
    this.judge = judge
    this.#random = random
    this.#chains = chains
  }

  get provider(): ModelProvider {
    return this.#random.pick(this.process.providers)
  }

  tell(text: string): void {
    this.judge.truth.tell(`${this.process.name}: ${text}`)
  }

  members(most: number): MemberRef[] {
    const pool = this.#random.pick([...this.judge.truth.pools.keys()])
    const names = this.judge.truth.pools.get(pool) ?? []
    return this.#random.some(names, most).map((member) => ({ pool, member }))
  }

  newChain(refs: readonly MemberRef[]): Chain {
    const chain: Chain = {
      id: `d${this.#chains.length + 1}`,
      keys: new Set(refs.map(keyOf)),
      wish: randomPolicy(this.#random, this.judge.truth.product),
      saved: undefined,
      savedAt: -Infinity,
      held: new Set(),
      announced: [],
      busy: false,
      crashed: false,
    }
    this.#chains.push(chain)
    return chain
  }

  /** Where tickets are kept: survives the process. */
  tickets(chain: Chain): Pick<Policy, 'tickets' | 'onTicket'> {
    const { process } = this
    const save = async (ticket: unknown): Promise<void> => {
      const early = this.#random.chance(0.5)
      const text = JSON.stringify(ticket)
      const keep = (): void => {
        chain.saved = text
        chain.savedAt = asOf
      }
      const asOf = this.judge.now
      if (early && process.alive) keep()
      const wait = this.#random.pick([0, 0, 3])
      if (wait > 0)
        await new Promise<void>((resolve) => this.judge.truth.clock.setTimeout(resolve, wait))
      if (!process.alive) return new Promise(() => undefined)
      if (!early) keep()
    }
    if (this.#random.chance(0.5)) return { onTicket: save }
    const others = new Map<string, unknown>()
    const tickets: TicketStore = {
      get: async (key) =>
        key === chain.id
          ? chain.saved === undefined
            ? undefined
            : (JSON.parse(chain.saved) as unknown)
          : others.get(key),
      set: async (key, value) => {
        if (key === chain.id) await save(value)
        else others.set(key, value)
        return true
      },
      delete: async (key) => {
        if (key !== chain.id) return others.delete(key)
        if (!process.alive) return new Promise(() => undefined)
        this.judge.ticketDropped(chain)
        chain.saved = undefined
        return true
      },
    }
    return { tickets }
  }

  listen(call: Call, askedAt = call.startedAt): (event: DrainEvent) => void {
    return (event) => {
      this.judge.truth.figures.add(`event: ${event.type}`)
      if (event.type === 'load') return
      if (event.type === 'end') {
        if (call.verb !== 'watch')
          for (const member of event.report.members) this.judge.saysEnded(call, member)
        return
      }
      const key = keyOf(event.ref)
      this.tell(`${call.verb} ${call.chain?.id ?? ''} says ${event.type} of ${key}${detail(event)}`)
      if (event.type === 'idle' && call.verb !== 'watch')
        this.judge.saysIdle(call, key, event.proof, askedAt)
      // one that found it drained has asked the floor for nothing, and holds it by the leave of its first client alone
      const draining = event.type === 'phase' && event.to === 'draining'
      if (draining && call.wishesDown.has(key)) call.holds.add(key)
      if (draining || event.type === 'in-force' || event.type === 'idle')
        this.judge.keeps(call, key)
      if (event.type === 'fault') {
        const { code, retryable } = event.error
        // also where an undo has begun meanwhile that finds nothing of its own there
        const hasHeld =
          call.holds.has(key) || call.kept.has(key) || call.chain?.held.has(key) === true
        if (code === 'POOL_AT_MINIMUM' && hasHeld) {
          call.yields.add(key)
          // its undo sends nothing where others hold the member
          this.judge.letGo(call, key)
        }
        if (code === 'REJECTED' && !retryable) call.refused.add(key)
      }
      if (event.type === 'overruled' && event.reset) this.judge.asksAgain(call, key)
      // overruled by another call of this process, or opened by its own undo
      const opened = event.type === 'phase' && event.to === 'active'
      const overruled = event.type === 'overruled' && !event.reset
      if (opened || overruled || event.type === 'removed') this.judge.letGo(call, key)
      if (overruled && call.verb !== 'stepDrain') call.over.add(key)
    }
  }

  policy(chain: Chain, call: Call, controller: AbortController): Policy {
    return {
      ...chain.wish.policy,
      id: chain.id,
      clock: this.process.clock,
      signal: controller.signal,
      onEvent: this.listen(call),
      ...this.tickets(chain),
    }
  }
}

export function describe({ keys, wish }: Chain): string {
  return `${[...keys].join(' ')} ${JSON.stringify(wish.policy)}`
}

function detail(event: DrainEvent): string {
  if (event.type === 'phase') return ` ${event.from} -> ${event.to}`
  if (event.type === 'fault') return ` (${words(event.error)})`
  if (event.type === 'overruled') return ` (${event.expected}, found ${event.found})`
  return ''
}

export function sayReport(report: DrainReport): string {
  const members = report.members.map(
    ({ ref, outcome, verifiedIdle, sealed, error }) =>
      `${keyOf(ref)} ${outcome}${verifiedIdle ? ' verified' : ''}${sealed ? ' sealed' : ''}${error === undefined ? '' : ` (${words(error)})`}`,
  )
  const error = report.error === undefined ? '' : ` (${words(report.error)})`
  return `${report.outcome}${error}: ${members.join(', ')}`
}
