import type { DrainEvent, DrainReport, Ticket } from 'drainable'
import { fakeClock, fakeProvider, type FakeClock, type FakeProvider } from 'drainable/testing'

export const web1 = { pool: 'web', member: 'web1' }
export const web2 = { pool: 'web', member: 'web2' }
export const web3 = { pool: 'web', member: 'web3' }

/** A clock that stands still and a balancer in memory with three members in one pool. */
export function setUp(options: Partial<Parameters<typeof fakeProvider>[0]> = {}): {
  clock: FakeClock
  lb: FakeProvider
} {
  const clock = fakeClock(1_000)
  const lb = fakeProvider({ pools: { web: ['web1', 'web2', 'web3'] }, clock, ...options })
  return { clock, lb }
}

/** Collects events, to be asked about afterwards. */
export function recorder(): {
  onEvent: (event: DrainEvent) => void
  events: DrainEvent[]
  types: () => string[]
  of: <T extends DrainEvent['type']>(type: T) => Extract<DrainEvent, { type: T }>[]
} {
  const events: DrainEvent[] = []
  return {
    events,
    onEvent: (event) => void events.push(event),
    types: () => events.map((event) => event.type),
    of: <T extends DrainEvent['type']>(type: T) =>
      events.filter((event): event is Extract<DrainEvent, { type: T }> => event.type === type),
  }
}

/** The one member of a report. */
export function only(report: DrainReport): DrainReport['members'][number] {
  if (report.members.length !== 1)
    throw new Error(`expected one member, got ${report.members.length}`)
  return report.members[0]!
}

/** What a promise rejects with. */
export async function thrown(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('expected a rejection')
}

/** The changes of a member of a ticket: those that are ours, and those that may still come. */
export function changesOf(member: Ticket['members'][number] | undefined): readonly string[] {
  if (member === undefined) return []
  const { earlier, set, late, intended } = member
  const ours = [...earlier, ...(set === null ? [] : [set])].map((level) => `${level}:applied`)
  const sent = [...late, ...(intended === null ? [] : [intended])]
  return [...ours, ...sent.map((change) => `${'to' in change ? change.to : change.kind}:intended`)]
}
