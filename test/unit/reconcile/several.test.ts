import { combineProviders, reconcile } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { describe, expect, it } from 'vitest'
import { desired, memoryStore, web } from './set-up.js'

function setUp() {
  const clock = fakeClock()
  const pools = { web: ['a', 'b', 'c'] }
  const one = fakeProvider({ pools, clock, instance: 'one' })
  const two = fakeProvider({ pools, clock, instance: 'two' })
  const lb = combineProviders({ one, two })
  const tickets = memoryStore()
  const start = () => reconcile(lb, { pools: ['web'], owns: () => true, tickets, clock })
  const states = (member: string): string[] => [one.state(web(member)), two.state(web(member))]
  return { clock, one, two, tickets, start, states }
}

describe('a reconciler over several balancers', () => {
  it('keeps each of them as wished, and tells them apart', async () => {
    const { clock, two, start, states } = setUp()
    const end = two.occupy(web('b'))
    await using loop = start()
    loop.set(desired({ a: 'serve', b: 'drain', c: 'absent' }))
    await clock.advance(10_000)
    expect([states('a'), states('c')]).toEqual([
      ['ready', 'ready'],
      ['gone', 'gone'],
    ])
    expect(states('b')).toEqual(['maint', 'drain']) // idle on one of them only
    expect(loop.status().map(({ ref, phase }) => [ref.balancer, ref.member, phase])).toEqual([
      ['one', 'b', 'idle'],
      ['two', 'b', 'draining'],
    ])
    end()
    await clock.runUntil(loop.settled())
    expect(states('b')).toEqual(['maint', 'maint'])
    loop.set(desired({ a: 'serve', b: 'serve' }))
    await clock.runUntil(loop.settled())
    expect(states('b')).toEqual(['ready', 'ready'])
    expect(loop.status()).toEqual([])
  })

  it('continues with one while another is unreadable, and catches up', async () => {
    const { clock, two, start, states } = setUp()
    two.disconnect()
    await using loop = start()
    const faults: string[] = []
    loop.on('fault', ({ message }) => faults.push(message))
    loop.set(desired({ a: 'serve', b: 'drain', c: 'serve' }))
    await clock.advance(10_000)
    expect(states('b')).toEqual(['maint', 'ready'])
    expect(faults[0]).toMatch(/^two: /)
    two.connect()
    await clock.runUntil(loop.settled())
    expect(states('b')).toEqual(['maint', 'maint'])
  })

  it('is continued by the next process, on each of them', async () => {
    const { clock, one, tickets, start, states } = setUp()
    const first = start()
    first.set(desired({ a: 'serve', b: 'drain', c: 'serve' }))
    await clock.runUntil(first.settled())
    await clock.runUntil(first.close())
    expect([...tickets.kept.keys()].filter((key) => key.startsWith('reconcile:'))).toHaveLength(2)
    one.reload() // forgets its drain while nobody is there
    await using second = start()
    second.set(desired({ a: 'serve', b: 'drain', c: 'serve' }))
    await clock.runUntil(second.settled())
    expect(states('b')).toEqual(['maint', 'maint'])
    second.set(desired({ a: 'serve', b: 'serve', c: 'serve' }))
    await clock.runUntil(second.settled())
    expect(states('b')).toEqual(['ready', 'ready'])
  })

  it('counts the floor for each balancer by itself', async () => {
    const { clock, one, start, states } = setUp()
    one.setBehind(web('a'), 'maint')
    one.setBehind(web('c'), 'maint')
    await using loop = start()
    loop.set(desired({ a: 'serve', b: 'drain', c: 'serve' }))
    await clock.advance(10_000)
    expect(states('b')).toEqual(['ready', 'maint'])
    const held = loop.status().find(({ ref }) => ref.balancer === 'one' && ref.member === 'b')
    expect(held?.held).toMatch(/keepReady|left serving|ready/)
  })
})
