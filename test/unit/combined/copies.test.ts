import { describe, expect, test, vi } from 'vitest'
import { startDrain, type Ticket } from 'drainable'
import type * as library from 'drainable'
import { a1, b1, bare, jsonStore, setUp } from './set-up.js'

/** Another copy of the package in this process, as its ESM and its CommonJS build are. */
async function another(): Promise<typeof library> {
  vi.resetModules()
  return await import('drainable')
}

describe('another copy of the package', () => {
  test('drains each balancer of a combined provider in its own run', async () => {
    const { clock, b, all } = setUp()
    const done = b.occupy(bare)
    const copy = await another()
    expect(copy.startDrain).not.toBe(startDrain)
    const run = copy.startDrain(all, [a1, b1], { timeout: '1m', clock })
    await clock.advance(5_000)
    expect(run.report().members.map(({ ref, phase }) => [ref.balancer, phase])).toEqual([
      ['a', 'idle'],
      ['b', 'draining'],
    ])
    done()
    const { outcome } = await clock.runUntil(run.done)
    expect(outcome).toBe('idle')
    await clock.runUntil(run.release())
  })

  test('goes on with a drain over several balancers, and undoes it', async () => {
    const { clock, a, b, all } = setUp()
    const tickets = jsonStore()
    const done = a.occupy(bare)
    const first = startDrain(all, [a1, b1], { timeout: '1m', clock, tickets, id: 't' })
    await clock.advance(5_000)
    await clock.runUntil(first.release())
    const { resumeDrain, restore } = await another()
    const ticket = async (): Promise<Ticket> => (await tickets.get('t')) as Ticket
    const run = resumeDrain(all, await ticket(), { clock, tickets })
    done()
    expect((await clock.runUntil(run.done)).outcome).toBe('idle')
    await clock.runUntil(run.release())
    const { outcome, members } = await clock.runUntil(
      restore(all, await ticket(), { clock, tickets }),
    )
    expect([outcome, members.map(({ ref }) => ref.balancer)]).toEqual(['restored', ['a', 'b']])
    expect([a.state(bare), b.state(bare)]).toEqual(['ready', 'ready'])
  })
})
