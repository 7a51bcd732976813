import { describe, expect, test } from 'vitest'
import { drain, heldMembers, isDrainableError, restore, stepDrain, type Ticket } from 'drainable'
import { setUp, thrown, web1, web2 } from '../core/set-up.js'
import { plainStore, unlistedStore } from './set-up.js'

async function drained() {
  const at = setUp()
  const map = new Map<string, unknown>()
  const tickets = plainStore(map)
  const { clock, lb } = at
  await clock.runUntil(drain(lb, web1, { clock, tickets, id: 'job-1' }))
  return { ...at, map, tickets, ticket: map.get('job-1') as Ticket }
}

describe('heldMembers', () => {
  test('lists who is drained, until it is opened again', async () => {
    const { clock, lb, tickets, ticket } = await drained()
    await clock.runUntil(drain(lb, web2, { clock, tickets, id: 'job-2' }))
    expect(await heldMembers(tickets)).toEqual([web1, web2])
    await clock.runUntil(restore(lb, ticket, { clock, tickets }))
    expect(await heldMembers(tickets)).toEqual([web2])
  })

  test('counts a hold that was only intended: its answer may be lost', async () => {
    const { clock, lb } = setUp()
    const map = new Map<string, unknown>()
    const step = await clock.runUntil(stepDrain(lb, { target: web1 }, { clock }))
    expect(step.ticket.members[0]).toMatchObject({ set: null, intended: { kind: 'hold' } })
    map.set(step.ticket.id, step.ticket)
    expect(await heldMembers(plainStore(map))).toEqual([web1])
  })

  test('asks one balancer by its instance', async () => {
    const { lb, tickets } = await drained()
    expect(await heldMembers(tickets, { instance: lb.instance })).toEqual([web1])
    expect(await heldMembers(tickets, { instance: 'another' })).toEqual([])
  })

  test('throws on a ticket that can not be read, or passes it to onUnreadable', async () => {
    const { map, tickets } = await drained()
    map.set('job-9', { id: 'job-9', v: 1 })
    const error = await thrown(heldMembers(tickets))
    expect(isDrainableError(error, 'TICKET_INVALID')).toBe(true)
    const ids: string[] = []
    expect(await heldMembers(tickets, { onUnreadable: (id) => ids.push(id) })).toEqual([web1])
    expect(ids).toEqual(['job-9'])
  })

  test('refuses a store that lists nothing: none would look like no drain', async () => {
    const { map } = await drained()
    const error = await thrown(heldMembers(unlistedStore(map)))
    expect(isDrainableError(error, 'UNSUPPORTED') && error.message).toContain('keys()')
  })

  test('refuses a wrong option', async () => {
    const { tickets } = await drained()
    const error = await thrown(heldMembers(tickets, { instance: '' }))
    expect(isDrainableError(error, 'INVALID_OPTIONS')).toBe(true)
  })
})
