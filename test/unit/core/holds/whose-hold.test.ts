import { afterEach, describe, expect, test } from 'vitest'
import { DrainableError, drain, restore, startDrain, type MemberRef, type Ticket } from 'drainable'
import { changesOf, only, web1 } from '../set-up.js'
import { balancer, json, restoreWall, sendThrough } from '../balancer.js'

afterEach(restoreWall)

function lost(): DrainableError {
  return new DrainableError('CONNECTION_LOST', 'the connection broke in the middle')
}

/** The states of a member's changes, as the ticket has them. */
function states(ticket: Ticket | undefined, { member }: MemberRef): readonly string[] {
  const found = ticket?.members.find(({ ref }) => ref.member === member)
  return changesOf(found)
}

// Fault 13: a member seen ready by us, then intended, then found as intended is ours.
describe('a hold whose answer is lost', () => {
  test('is ours for restore() in the process that saw it ready', async () => {
    const { clock, lb } = balancer()
    sendThrough(lb, async (changes, ctx, apply) => {
      const results = await apply(changes, ctx)
      if (changes.some(({ kind }) => kind === 'hold')) {
        lb.failNext('throw', { verb: 'observe', times: 2 }) // so that it can't be read back at once
        throw lost()
      }
      return results
    })
    const run = startDrain(lb, web1, { clock, timeout: '1m' })
    await clock.advance(1)
    expect(lb.state(web1)).toBe('drain')
    const report = await clock.runUntil(run.restore())
    expect(lb.state(web1)).toBe('ready')
    expect(only(report).outcome).toBe('restored')
  })

  // What must stay true.
  test('is left alone by restore(ticket) of another process', async () => {
    const { clock, lb } = balancer()
    const kept: Ticket[] = []
    const onTicket = (ticket: Ticket): void => void kept.push(json(ticket))
    await clock.runUntil(drain(lb, web1, { clock, seal: false, onTicket }))
    expect(states(kept[0], web1)).toEqual(['drain:intended'])
    const report = await clock.runUntil(restore(lb, kept[0]!, { clock }))
    expect(only(report).error?.code).toBe('CONFLICT')
    expect(lb.state(web1)).toBe('drain')
  })
})
