import { pause } from '../../provider/clock.js'
import { DrainableError, isDrainableError } from '../../provider/error.js'
import { formatRef, isSameIdentity, refKey } from '../../provider/member-ref.js'
import { printable, quote } from '../../provider/quote.js'
import type { Why } from '../../provider/report.js'
import { isUnreachable } from '../../provider/thrown.js'
import type { DrainEvent } from '../../core/events.js'
import type { TicketMember } from '../../core/tickets/ticket.js'
import { readyUnder } from '../../core/calls/ready.js'
import { restoreUnder } from '../../core/calls/restore.js'
import { select } from '../../core/calls/watch.js'
import { mayOwe } from '../../core/tickets/owed.js'
import { wasReady } from './left.js'
import type { ServerState } from './ledger.js'
import type { RollContext } from './roll-context.js'

/** Between two tries to make a server ready, in milliseconds. */
const OPENING_PAUSE = 1_000
/** Less than that says nothing, in milliseconds. */
const SHORTEST_OPENING = 1_000

/** Brings one server back that was acted on. */
export class Opening {
  readonly #server: ServerState
  readonly #context: RollContext
  /** What says why it is not open again, by balancer, and why that is tried again. */
  #waits: (() => readonly Why[])[] = []
  #failure: DrainableError | undefined

  constructor(server: ServerState, context: RollContext) {
    this.#server = server
    this.#context = context
  }

  /** Why it is not open yet. */
  why(): readonly Why[] {
    const said = this.#waits.flatMap((why) => why())
    const [ref] = this.#server.refs
    if (said.length > 0 || this.#failure === undefined || ref === undefined) return said
    const text = `it can't be opened yet: ${printable(this.#failure.message)}; it is tried again`
    return [{ code: 'unreadable', ref, text }]
  }

  /**
   * Opens what this roll has drained, and nothing else, and sees it healthy.
   *
   * @throws `CONFLICT` where a name belongs to another member now; what `ready()` throws
   */
  async open(): Promise<void> {
    const { provider, subject, policy, signal, ledger, check, emit } = this.#context
    const { clock, term } = policy
    const { by, limit } = ledger.plan.health
    const members = this.#server.drain?.members ?? []
    const ours = members.filter(wasReady)
    const refs = ours.map(({ ref }) => ref)
    if (refs.length > 0) {
      const waitHealthy = by === 'caller' ? check : by === 'balancer'
      const until = clock.now() + (limit ?? Infinity)
      await this.#patiently(until, async (timeout) => {
        await this.#refuseOthers(ours)
        const onEvent = (event: DrainEvent): void => {
          if (event.type === 'fault') emit(event)
        }
        const how = { clock, signal, waitHealthy, timeout, onEvent }
        this.#waits = []
        return readyUnder(provider, refs, how, subject, term, (why) => {
          this.#waits.push(why)
        })
      })
    }
    await this.#backAsFound(members.filter((member) => !wasReady(member)))
  }

  /**
   * A name may belong to another machine by now, most of all after a crash: what its owner keeps out must
   * stay out. Where the drain itself saw the change, `act` was told of it and ended well all the same.
   */
  async #refuseOthers(members: readonly TicketMember[]): Promise<void> {
    const { provider, policy, signal } = this.#context
    const { clock } = policy
    const known = new Map(
      members.flatMap(({ ref, found, outcome }) =>
        found === null || outcome === 'gone' ? [] : [[refKey(ref), found.identity] as const],
      ),
    )
    if (known.size === 0) return
    const refs = members.map(({ ref }) => ref)
    for (const reading of await select(provider, refs, { clock, signal })) {
      const identity = known.get(refKey(reading.ref))
      if (!reading.present || identity === undefined) continue
      if (isSameIdentity(identity, reading.identity)) continue
      const { ref } = reading
      throw new DrainableError(
        'CONFLICT',
        `${formatRef(ref)} is another member now: ${quote(reading.identity)}, and not ${quote(identity)} that was acted on; nothing was opened, open what should serve with ready()`,
        { ref },
      )
    }
  }

  /** A balancer that can't be reached for a while is no reason to leave a server out that was acted on. */
  async #patiently(until: number, open: (timeout: number) => Promise<unknown>): Promise<void> {
    const { policy, signal } = this.#context
    const { clock } = policy
    for (;;) {
      try {
        await open(Math.max(SHORTEST_OPENING, until - clock.now()))
        return
      } catch (thrown) {
        const again = isUnreachable(thrown) && clock.now() < until
        if (!again || !isDrainableError(thrown) || !thrown.retryable) throw thrown
        this.#failure = thrown
        await pause(clock, OPENING_PAUSE, signal)
      }
    }
  }

  /** A member that was taken out before us is left out, as they had it. */
  async #backAsFound(members: readonly TicketMember[]): Promise<void> {
    const { provider, policy, signal } = this.#context
    const { drain } = this.#server
    if (drain === null || !members.some(mayOwe)) return
    const own = { ...policy, data: drain.policy, tickets: undefined, onTicket: undefined, signal }
    const report = await restoreUnder(provider, { ...drain, members }, own)
    const error = report.members.find((member) => member.error !== undefined)?.error
    if (report.outcome !== 'restored' && error !== undefined) throw error
  }
}
