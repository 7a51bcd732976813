/** An undo without an answer that one run after another leaves, each with a copy of it from the ticket. */
import { expect, test } from 'vitest'
import { startDrain, type Ticket } from 'drainable'
import type { FakeClock, FakeProvider } from 'drainable/testing'
import {
  joinBalancer,
  type LeftChange,
  type Stake,
} from '../../../../src/core/runner/balancer/balancer.js'
import { refKey } from '../../../../src/provider/member-ref.js'
import { web1 } from '../set-up.js'
import { json, rig } from '../rig.js'

const NOTHING: Omit<Stake, 'seq'> = {
  side: () => null,
  down: new Map(),
  overrule: () => null,
  ticket: () => undefined,
  takeUp: () => false,
  owned: () => null,
  late: () => [],
  inherit: () => undefined,
  touched: () => undefined,
}

/** A step of a drain, which knows its undo from the ticket, comes and goes. */
function step(lb: FakeProvider, clock: FakeClock, until: number | null = null): void {
  const { leave } = joinBalancer(lb, true, (seq) => ({ ...NOTHING, seq }))
  const change = { kind: 'restore', ref: web1, expect: 'maint', to: 'drain' } as const
  const late: LeftChange = {
    change: json(change),
    lostAt: clock.now(),
    until,
    lackedAt: null,
    ticket: 'job',
    clock,
  }
  leave(new Map([[refKey(web1), [late]]]), 1_000)
}

/** Changes without an answer that the newest ticket has. */
const lateOf = ({ members }: Ticket): readonly unknown[] =>
  members.flatMap(({ state }) => state.hold.late)

test('an undo without an answer that steps leave is one change for a drain', async () => {
  const { clock, lb } = rig({ capabilities: { lateBound: 1_000 } })
  const tickets: Ticket[] = []
  const onTicket = (ticket: Ticket): void => void tickets.push(json(ticket))
  lb.occupy(web1)
  const run = startDrain(lb, web1, { clock, timeout: '1h', onTicket })
  await clock.advance(300)
  for (let n = 0; n < 20; n += 1) step(lb, clock, clock.now() + n)
  lb.reload() // the put-back writes a ticket
  await clock.advance(300)
  expect(lateOf(tickets.at(-1)!)).toHaveLength(1)
  await clock.runUntil(run.restore(), 60_000)
  await run.release()
})
