import type { Ticket, TicketStore } from 'drainable'
import { systemClock } from 'drainable/provider'
import { FIRST_ANSWER } from '../../../src/core/tickets/calls.js'
import { TicketWriter } from '../../../src/core/tickets/writing/writer.js'

/** More than a store may take for one answer. */
export const LONG = 31_000

/** A ticket, as far as a store can tell. */
export function ticket(n: number): Ticket {
  return { v: 1, id: 'job', startedAt: String(n) } as unknown as Ticket
}

/** Which of them a store in memory holds. */
export function startedAt(map: ReadonlyMap<string, unknown>): string | undefined {
  return (map.get('job') as Ticket | undefined)?.startedAt
}

/** A writer as a test calls it: each writing has the longest time. */
export interface TestWriter {
  readonly save: (current: () => Ticket) => Promise<void>
  readonly drop: () => Promise<void>
  readonly yield: () => void
}

export function writerFor(store: TicketStore): TestWriter {
  const writer = new TicketWriter('job', { store }, systemClock)
  return {
    save: (current) => writer.save(current, FIRST_ANSWER),
    drop: () => writer.drop(FIRST_ANSWER),
    yield: () => writer.yield(),
  }
}
