import type { ProcessSight, Wanted } from '../read/read.js'
import type { KeptConnection } from './kept-connection.js'

/**
 * How often a whole look is taken while everything is busy, ms: over a new connection, which leads to the process that
 * serves by then, and with the master's list of workers.
 */
const WHOLE_LOOK = 250
/** A look over the kept connection that is not answered within this time is given up, ms. */
export const GLANCE = 100
/** With more members a look costs more than its connection. */
const MOST = 20

/**
 * What looks can leave out while every member is at work: no decision depends on such a look, so it need not be the
 * whole one each time.
 */
export class BusyLooks {
  /** When the last whole look was asked for, if it showed every member at work; by the clock of the calls. */
  #wholeAt = -Infinity
  /** When the master last listed its workers. */
  #listedAt = -Infinity

  /** Takes in a whole look. */
  note(sight: ProcessSight): void {
    this.#wholeAt = isBusy(sight) ? sight.sampledAt : -Infinity
  }

  /** The master has listed its workers. */
  listed(now: number): void {
    this.#listedAt = now
  }

  /** The next look is a whole one: something was changed, or the master could not be asked. */
  reset(): void {
    this.#listedAt = -Infinity
    this.#wholeAt = -Infinity
  }

  /** Whether the next look can go over the kept connection. */
  mayGlance(wanted: Wanted, now: number): boolean {
    const due = Math.min(this.#wholeAt, this.#listedAt) + WHOLE_LOOK
    return now < due && countOf(wanted) <= MOST
  }

  /** Whether this look need not ask the master. */
  mayLeaveMaster(sight: ProcessSight, now: number): boolean {
    return now < this.#listedAt + WHOLE_LOOK && isBusy(sight)
  }
}

/** Whether every member that was looked at has work. */
export function isBusy({ members }: ProcessSight): boolean {
  const rows = [...members.values()].map(({ row }) => row)
  return rows.length > 0 && rows.every(({ active, queued }) => active + queued > 0)
}

/** A kept connection, if it is open and owes no answer. */
export function readyOf(kept: KeptConnection | undefined): KeptConnection | undefined {
  return kept?.state === 'open' && kept.isQuiet ? kept : undefined
}

function countOf(wanted: Wanted): number {
  let count = 0
  for (const names of wanted.values()) count += names === 'all' ? Infinity : names.size
  return count
}
