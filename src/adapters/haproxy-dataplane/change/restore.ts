import type { ChangeOutcome } from '../../../kit/change.js'
import { leftBehind } from '../../../kit/errors.js'
import type { AdminState, CallContext } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import type { Found } from '../read/read.js'
import { weightOf } from '../read/reading.js'
import { isUnresolved } from '../read/state.js'
import {
  askServer,
  failure,
  find,
  known,
  putServer,
  type Seen,
  type Sent,
  type Tools,
} from './tools.js'

/** Brings servers back to a state: by an undo, or because a change was refused when a part of it was done. */
export class Restorer {
  readonly #tools: Tools

  constructor(tools: Tools) {
    this.#tools = tools
  }

  /**
   * Asks for the state of an undo.
   *
   * @returns what came of that, and the weight that was set to 0 for it
   * @throws `CONFLICT` where leaving maint would cut what backup servers hold
   */
  async open(
    seen: Seen,
    to: AdminState,
    ctx: CallContext,
  ): Promise<Pick<Sent, 'lost' | 'refused' | 'weight'>> {
    const { api } = this.#tools
    const { ref, found, view } = seen
    if (isUnresolved(found.row.status) && found.verdict.own === 'drain') {
      // The API misreads its mask as ready, and then sends nothing.
      this.#assertGentle(seen)
      await putServer(api, ref, { admin_state: 'maint' }, ctx)
      return askServer(api, ref, to, ctx)
    }
    const sessions = mayCut(seen, found)
    if (sessions === 0) return askServer(api, ref, to, ctx)
    if (!view.served.setsWeight) throw keepsBackups(seen, sessions)
    await putServer(api, ref, { weight: 0 }, ctx)
    const opened = await askServer(api, ref, 'ready', ctx)
    const isOver = to === 'ready' || opened.lost !== undefined || opened.refused !== undefined
    return { ...(isOver ? opened : await askServer(api, ref, to, ctx)), weight: weightOf(found) }
  }

  /** The refusal of a change, once the member is as it was found; where it is not, it is not known. */
  async back(
    sent: Pick<Sent, 'before' | 'weight'>,
    refused: DrainableError,
    ctx: CallContext,
  ): Promise<ChangeOutcome> {
    const left = await this.#putBack(sent, ctx).catch((error: unknown) => known(error, ctx).message)
    if (left === undefined) return { status: 'rejected', error: refused }
    const words = `what was done before could not be put back: ${left}`
    return { status: 'unknown', error: leftBehind(refused, words) }
  }

  /** Returns what is left of the change. */
  async #putBack(
    { before, weight }: Pick<Sent, 'before' | 'weight'>,
    ctx: CallContext,
  ): Promise<string | undefined> {
    const { api, reader } = this.#tools
    const { ref } = before
    const look = async (): Promise<Found | undefined> => find(await reader.view([ref], ctx), ref)
    let now = await look()
    if (!isAsBefore(before.found, now)) {
      const to = before.found.verdict.own
      if (now === undefined) return 'it is gone'
      if (to === 'unknown') return 'its state before is not known'
      if (to === 'maint') this.#assertGentle(before)
      else if (mayCut(before, now) > 0) throw keepsBackups(before, mayCut(before, now))
      await putServer(api, ref, { admin_state: to }, ctx)
      now = await look()
    }
    if (!isAsBefore(before.found, now)) return `its status is '${now?.row.status ?? 'gone'}'`
    if (weight !== undefined) await putServer(api, ref, { weight }, ctx)
    return undefined
  }

  /** @throws `REJECTED` where maint may cut */
  #assertGentle({ ref, config }: Seen): void {
    const cuts = this.#tools.settings.maintCuts ?? config.maint !== 'gentle'
    if (!cuts) return
    const words = `${formatRef(ref)}: going through maint may cut its sessions, set maintCuts: false if it does not`
    throw failure(ref, 'REJECTED', words)
  }
}

/**
 * With `on-marked-up shutdown-backup-sessions`, a server that leaves maint cuts the sessions on the backend's backup
 * servers, unless its weight is 0 at that moment.
 *
 * @param now - as it is found now
 * @returns how many those are
 */
function mayCut({ ref, view, config }: Seen, now: Found): number {
  if (now.verdict.own !== 'maint' || now.row.weight === 0 || config.cutsBackups === false) return 0
  const others = [...(view.pools.get(ref.pool)?.values() ?? [])]
  return others.reduce((sum, { row }) => sum + (row.backup ? row.scur : 0), 0)
}

function keepsBackups({ ref }: Seen, sessions: number): DrainableError {
  const words = `${formatRef(ref)}: leaving maint may cut ${sessions} sessions on backup servers (on-marked-up shutdown-backup-sessions); try again when they have ended, or use durable drains or Data Plane API 3.4`
  return failure(ref, 'CONFLICT', words)
}

/** By its own state; where that was not known, by the words of the statistics. */
function isAsBefore(before: Found, now: Found | undefined): boolean {
  if (now === undefined) return false
  const { own } = before.verdict
  if (own !== 'unknown') return own === now.verdict.own
  return before.row.status === now.row.status
}
