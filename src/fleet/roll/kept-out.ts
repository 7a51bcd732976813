import type { DrainHandle } from '../../core/calls/handle.js'
import type { PolicyData, Ticket } from '../../core/tickets/ticket.js'
import type { ResolvedPolicy } from '../../core/calls/policy.js'
import { openResumed } from '../../core/calls/resume.js'
import type { ServerState } from './ledger.js'
import type { RollContext } from './roll-context.js'

/** Nothing is cut and nothing ends by time: it only waits for its turn. */
const WAITING: Partial<PolicyData> = { timeout: null, onTimeout: 'fail', escalateAfter: null }

/**
 * Keeps a server out that an earlier process left drained until its turn in a resumed roll: a reload would
 * open what is perhaps half installed.
 */
export class KeptOut {
  readonly #server: ServerState
  readonly #context: RollContext
  readonly #handle: DrainHandle
  #isOver = false

  constructor(server: ServerState, drain: Ticket, context: RollContext) {
    this.#server = server
    this.#context = context
    const { provider, subject, policy, emit, ledger } = context
    const resolved: ResolvedPolicy = {
      ...policy,
      data: { ...policy.data, ...WAITING },
      signal: undefined, // it is let go by the roll, as are those under way
      onEvent: (event) => {
        // Its drain is told in its turn; what goes wrong before is told at once.
        if (event.type === 'fault' || event.type === 'overruled') emit(event)
      },
      tickets: undefined,
      onTicket: undefined,
      whole: ledger.part((ticket, limit) => this.#keep(ticket, drain, limit)),
    }
    this.#handle = openResumed(provider, { ...drain, deadline: null }, resolved, subject).handle
  }

  /** Lets go of it, as it is: its turn has come, or the roll is over. */
  async end(): Promise<void> {
    await this.#handle.release()
    this.#isOver = true
  }

  async #keep(ticket: Ticket, { policy, deadline }: Ticket, limit: number): Promise<void> {
    if (this.#isOver) return
    this.#server.drain = { ...ticket, policy, deadline }
    await this.#context.ledger.save(limit)
  }
}
