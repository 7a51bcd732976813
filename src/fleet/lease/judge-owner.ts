import type { Clock } from '../../provider/clock.js'
import { quote } from '../../provider/quote.js'
import { Leadership, Term } from './leadership.js'
import type { Lease } from './lease.js'
import type { OwnerState } from '../../core/tickets/owner.js'
import type { Ticket } from '../../core/tickets/ticket.js'

/** How long the lease is taken just to see whether it is free, in milliseconds. */
const ASKED_FOR = 2_000

/** What is known about the owner of a ticket. */
export interface Judged {
  readonly state: OwnerState
  readonly text: string
}

/**
 * Judges owners on other machines by the lease under which their tickets were written: its holder continues them.
 * Asks the lease once, and only if it decides.
 */
export class LeaseJudge {
  readonly #lease: Lease | undefined
  readonly #clock: Clock
  readonly #subject: string
  readonly #signal: AbortSignal
  #answer: Promise<{ readonly isHeld: boolean; readonly text: string }> | undefined

  constructor(lease: Lease | undefined, clock: Clock, subject: string, signal: AbortSignal) {
    this.#lease = lease
    this.#clock = clock
    this.#subject = subject
    this.#signal = signal
  }

  /** @throws the error of the lease's engine; `signal.reason` */
  async judge({ lease: mark }: Ticket, judged: Judged): Promise<Judged> {
    const lease = this.#lease
    if (judged.state !== 'unknown' || lease === undefined || mark?.name !== lease.name)
      return judged
    this.#answer ??= this.#ask(lease)
    const { isHeld, text } = await this.#answer
    return { state: isHeld ? 'lives' : 'gone', text: `${judged.text}; ${text}` }
  }

  async #ask(lease: Lease): Promise<{ readonly isHeld: boolean; readonly text: string }> {
    const [clock, subject] = [this.#clock, this.#subject]
    const leadership = new Leadership({ lease, ttl: ASKED_FOR, clock, owner: subject, subject })
    const answer = await leadership.acquire(this.#signal)
    const name = `the lease ${quote(lease.name)}`
    if (!(answer instanceof Term)) {
      const holder = answer.holder === null ? 'a process' : quote(answer.holder)
      return { isHeld: true, text: `${holder} has ${name}` }
    }
    await answer.release()
    return { isHeld: false, text: `no process has ${name}` }
  }
}
