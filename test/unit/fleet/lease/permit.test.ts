import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { DrainableError, restore, type TicketStore } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { openDrain } from '../../../../src/core/calls/drain.js'
import { parsePolicy } from '../../../../src/core/calls/policy.js'
import { saveTicket } from '../../tickets/calls.js'

const web1 = { pool: 'web', member: 'web1' }
const refused = new DrainableError('NOT_LEADER', 'the lease is over')

function memoryStore(): TicketStore & { readonly kept: Map<string, unknown> } {
  const kept = new Map<string, unknown>()
  return {
    kept,
    get: async (k) => kept.get(k),
    set: async (k, v) => kept.set(k, v),
    delete: async (k) => kept.delete(k),
    keys: () => kept.keys(),
  }
}

function setUp(allowed: () => boolean) {
  const clock = fakeClock()
  const lb = fakeProvider({ pools: { web: ['web1', 'web2', 'web3'] }, clock })
  const tickets = memoryStore()
  const policy = parsePolicy({ clock, tickets, id: 'one', timeout: '5s' }, 'test()')
  const term = { permit: () => (allowed() ? undefined : refused), mark: { name: 'l', fence: 7 } }
  const start = () =>
    openDrain(lb, { kind: 'members', refs: [web1] }, { ...policy, term }, 'test()').handle
  const applied = () =>
    lb.requests.flatMap((one) => (one.verb === 'apply' ? (one.changes ?? []) : []))
  return { clock, lb, tickets, start, applied }
}

describe('a drain under a lease', () => {
  it('sends nothing if the lease ends as it begins', async () => {
    const { clock, start, applied, lb } = setUp(() => false)
    const handle = start()
    const report = await clock.runUntil(handle.done)
    expect(report.outcome).toBe('refused')
    expect(report.members[0]?.error?.code).toBe('NOT_LEADER')
    expect(applied()).toEqual([])
    expect(lb.state(web1)).toBe('ready')
    await handle.release()
  })

  it('sends no seal and no put-back once the lease is over', async () => {
    let allowed = true
    const { clock, start, applied, lb } = setUp(() => allowed)
    const end = lb.occupy(web1)
    const handle = start()
    await clock.runUntil(handle.inForce)
    expect(applied()).toHaveLength(1)
    allowed = false
    lb.reload()
    end()
    await clock.runUntil(handle.done)
    expect(applied()).toHaveLength(1)
    await handle.release()
  })

  it('asks when a change is sent, not when it is decided', async () => {
    let allowed = true
    const { clock, start, applied, tickets } = setUp(() => allowed)
    const set = tickets.set.bind(tickets)
    tickets.set = async (k, v) => {
      allowed = false // frozen while the store writes
      return set(k, v)
    }
    const handle = start()
    await clock.runUntil(handle.done)
    expect(applied()).toEqual([])
    await handle.release()
  })

  it('has its number in the ticket, which no earlier number overwrites', async () => {
    const { clock, start, tickets, lb } = setUp(() => true)
    lb.occupy(web1)
    const handle = start()
    await clock.runUntil(handle.inForce)
    const ticket = await handle.ticket
    expect(ticket.lease).toEqual({ name: 'l', fence: 7 })
    await handle.release()
    await saveTicket(tickets, { ...ticket, lease: { name: 'l', fence: 9 } })
    await expect(saveTicket(tickets, ticket)).rejects.toMatchObject({ code: 'NOT_LEADER' })
    expect(tickets.kept.get('one')).toMatchObject({ lease: { fence: 9 } })
    await saveTicket(tickets, { ...ticket, lease: { name: 'another', fence: 1 } })
  })

  it('does not drop a ticket of a later holder', async () => {
    const { clock, start, tickets, lb } = setUp(() => true)
    lb.occupy(web1)
    const handle = start()
    await clock.runUntil(handle.inForce)
    const ticket = await handle.ticket
    // The process is frozen after its undo; the next one drains the member again under the same id.
    const get = tickets.get.bind(tickets)
    const later = { ...ticket, lease: { name: 'l', fence: 9 } }
    const restored = lb.apply.bind(lb)
    lb.apply = async (changes, ctx) => {
      const results = await restored(changes, ctx)
      await setImmediate() // what it writes of the undo is written by then
      if (changes.some(({ kind }) => kind === 'restore')) tickets.kept.set('one', later)
      return results
    }
    await clock.runUntil(handle.restore())
    expect(await get('one')).toMatchObject({ lease: { fence: 9 } })
  })

  it('does not drop it either if nothing was left to undo', async () => {
    const { clock, start, tickets, lb } = setUp(() => true)
    lb.occupy(web1)
    const handle = start()
    await clock.runUntil(handle.inForce)
    const ticket = await handle.ticket
    await handle.release()
    lb.setBehind(web1, 'ready')
    tickets.kept.set('one', { ...ticket, lease: { name: 'l', fence: 9 } })
    await clock.runUntil(restore(lb, ticket, { clock, tickets }))
    expect(tickets.kept.get('one')).toMatchObject({ lease: { fence: 9 } })
  })
})
