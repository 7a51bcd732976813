import type { Waits } from '../../provider/abort.js'
import type { Clock } from '../../provider/clock.js'
import type { MemberRef } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import type { Why } from '../../provider/report.js'
import { LATER_ANSWER } from '../../core/tickets/calls.js'
import {
  type TicketHead,
  type TicketTargets,
  TicketWriter,
  type WholeTicket,
} from '../../core/tickets/writing/writer.js'
import type { RollData, RolledServer, Ticket } from '../../core/tickets/ticket.js'

/** How much of a roll's id is in those of its servers: an id has 200 characters at most. */
const ID_LENGTH = 190

/** One server of a roll, as the roll knows it now. */
export interface ServerState {
  readonly address: string | null
  readonly refs: readonly MemberRef[]
  /** See the ticket's schema. */
  state: RolledServer['state']
  attempt: number
  error: DrainableError | null
  /** What its drain has done, and what undoes it; null where nothing of ours is left on it. */
  drain: Ticket | null
  /** Its members that are not ours to open, once it is done. */
  leftAsFound: readonly MemberRef[]
}

/** How far a roll is with its servers, and its ticket. */
export class RollLedger {
  readonly plan: RollData['plan']
  readonly servers: readonly ServerState[]
  readonly head: TicketHead
  readonly #writer: TicketWriter

  constructor(
    head: TicketHead,
    {
      plan,
      servers,
    }: { readonly plan: RollData['plan']; readonly servers: readonly ServerState[] },
    targets: TicketTargets,
    clock: Clock,
    waits: Waits,
  ) {
    this.plan = plan
    this.servers = servers
    this.head = head
    this.#writer = new TicketWriter(head.id, targets, clock, head.lease, waits)
  }

  /** See {@link TicketWriter.why}. */
  get why(): Omit<Why, 'ref'> | undefined {
    return this.#writer.why
  }

  /** The ticket as of now. */
  ticket(): Ticket {
    return {
      v: 1,
      ...this.head,
      members: [],
      roll: { v: 1, plan: this.plan, servers: this.servers.map(toRolled) },
    }
  }

  /** The id of a server's own ticket: one call lives per id, and several servers are out at once. */
  idOf(server: ServerState): string {
    return `${this.head.id.slice(0, ID_LENGTH)}:${this.servers.indexOf(server)}`
  }

  /** Writes the ticket; rejects where the store or `onTicket` failed, or did not answer. */
  save(limit = LATER_ANSWER): Promise<void> {
    return this.#writer.save(() => this.ticket(), limit)
  }

  /** Where a server's drain keeps its own ticket: in this one. */
  part(save: WholeTicket['save']): WholeTicket {
    const writer = this.#writer
    return {
      get peer() {
        return writer.peer
      },
      save,
    }
  }

  /** Forgets the ticket: there is nothing to go on with, nor to undo. */
  drop(): Promise<void> {
    return this.#writer.drop(LATER_ANSWER)
  }
}

function toRolled({ error, ...rest }: ServerState): RolledServer {
  if (error === null) return { ...rest, error }
  const { code, message, retryable } = error
  return { ...rest, error: { code, message, retryable } }
}

/** The servers of a ticket, to go on with. */
export function thawServers({ servers }: RollData): ServerState[] {
  return servers.map(({ error, ...rest }) => {
    if (error === null) return { ...rest, error }
    const { code, message, retryable } = error
    return { ...rest, error: new DrainableError(code, message, { retryable }) }
  })
}
