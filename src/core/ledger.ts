import type { Change, ChangeResult, Json } from '../provider/contract.js'
import type { DrainState } from './machine/state.js'
import type { PolicyData } from './policy-data.js'
import {
  freezeState,
  type Ticket,
  type TicketChange,
  type TicketMember,
  type TicketStore,
} from './ticket.js'
import { indexTicket, saveTicket } from './ticket-store.js'

/** What of a member's undo is known from an earlier run under the same id. */
export interface Inherited {
  readonly wasAdmin: TicketMember['wasAdmin']
  readonly native: Json | null
  readonly changes: readonly TicketChange[]
}

interface Entry {
  readonly inherited: Inherited | undefined
  changes: TicketChange[]
}

/** Where tickets go. */
export interface LedgerTargets {
  readonly store: TicketStore | undefined
  readonly onTicket: ((t: Ticket) => Promise<void> | void) | undefined
}

/**
 * The ticket of one drain while it runs: what was intended, what was applied, and how to undo it.
 * Writings go out one after another, in order.
 */
export class Ledger {
  readonly #head: Pick<Ticket, 'id' | 'instance' | 'startedAt' | 'deadline'> & {
    readonly policy: PolicyData
  }
  readonly #targets: LedgerTargets
  readonly #entries = new Map<string, Entry>()
  readonly #wallOffset: () => number
  #writing: Promise<void> = Promise.resolve()
  #indexed = false
  #closed = false

  constructor(
    head: Pick<Ticket, 'id' | 'instance' | 'startedAt' | 'deadline' | 'policy'>,
    targets: LedgerTargets,
    wallOffset: () => number,
  ) {
    this.#head = head
    this.#targets = targets
    this.#wallOffset = wallOffset
  }

  /** Whether anybody keeps the ticket. */
  get kept(): boolean {
    return this.#targets.store !== undefined || this.#targets.onTicket !== undefined
  }

  /** Whether any change was sent, or taken over from an earlier run: else there is nothing to undo. */
  get changed(): boolean {
    return [...this.#entries.values()].some(
      ({ inherited, changes }) => inherited !== undefined || changes.length > 0,
    )
  }

  get id(): string {
    return this.#head.id
  }

  /** Takes over what an earlier ticket knew of a member. */
  inherit(key: string, from: Inherited): void {
    this.#entries.set(key, { inherited: from, changes: [...from.changes] })
  }

  intend(key: string, change: Change): void {
    const noted = toTicketChange(change, 'intended')
    if (noted !== undefined) this.#entry(key).changes.push(noted)
  }

  settle(key: string, change: Change, result: ChangeResult): void {
    const entry = this.#entry(key)
    const last = entry.changes.findLastIndex(
      (known) => known.kind === change.kind && known.state === 'intended',
    )
    if (last < 0) return
    if (result.status === 'applied' || result.status === 'unchanged') {
      const noted = toTicketChange(change, result.status)
      if (noted !== undefined) entry.changes[last] = noted
    } else if (result.status === 'rejected') {
      entry.changes.splice(last, 1)
    }
  }

  /** A change whose lost answer turned out to have been carried out. */
  confirm(key: string): void {
    const entry = this.#entry(key)
    entry.changes = entry.changes.map((change) =>
      change.state === 'intended' ? { ...change, state: 'applied' } : change,
    )
  }

  #entry(key: string): Entry {
    let entry = this.#entries.get(key)
    if (entry === undefined) {
      entry = { inherited: undefined, changes: [] }
      this.#entries.set(key, entry)
    }
    return entry
  }

  /** The ticket as of now. */
  ticket(states: ReadonlyMap<string, DrainState>): Ticket {
    const offset = this.#wallOffset()
    const members = [...states].map(([key, state]): TicketMember => {
      const { inherited, changes } = this.#entry(key)
      const own = state.found?.own
      return {
        ref: state.ref,
        identity: state.found?.identity ?? null,
        wasAdmin:
          inherited === undefined
            ? own === undefined || own === 'unknown'
              ? null
              : own
            : inherited.wasAdmin,
        native: inherited === undefined ? (state.found?.native ?? null) : inherited.native,
        changes: [...changes],
        outcome: state.ended?.outcome ?? null,
        state: freezeState(state, offset),
      }
    })
    return { v: 1, ...this.#head, members, savedAt: Date.now() }
  }

  /** Writes the ticket to everybody who keeps it; rejects where one of them could not. */
  save(states: ReadonlyMap<string, DrainState>): Promise<void> {
    if (!this.kept || this.#closed) return Promise.resolve()
    const ticket = this.ticket(states)
    const write = this.#writing.catch(() => undefined).then(() => this.#write(ticket))
    this.#writing = write
    return write
  }

  /** Writes nothing any more; resolves when what is being written is through. */
  close(): Promise<void> {
    this.#closed = true
    return this.#writing.catch(() => undefined)
  }

  async #write(ticket: Ticket): Promise<void> {
    const { store, onTicket } = this.#targets
    if (store !== undefined) {
      if (!this.#indexed) {
        await indexTicket(store, ticket.id)
        this.#indexed = true
      }
      await saveTicket(store, ticket)
    }
    await onTicket?.(ticket)
  }
}

function toTicketChange(change: Change, state: TicketChange['state']): TicketChange | undefined {
  const at = new Date().toISOString()
  if (change.kind === 'hold') return { kind: 'hold', to: change.to, state, at }
  if (change.kind === 'terminate' || change.kind === 'remove')
    return { kind: change.kind, state, at }
  return undefined
}
