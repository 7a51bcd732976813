import type { DesiredMember } from 'drainable'
import { describe, expect, it } from 'vitest'
import { bench, web, type Bench } from './set-up.js'

/** A pod of a StatefulSet: it comes back under its name, mostly at another address. */
function pod(member: string, address: string): DesiredMember {
  return { pool: 'web', member, address, port: 80, state: 'serve' }
}

/** Where the members that serve are. */
async function serving({ lb, clock }: Bench): Promise<string[]> {
  const { signal } = new AbortController()
  const { readings } = await lb.observe('all', { signal, clock })
  return readings.flatMap((one) =>
    one.present && one.serves && one.ref.pool === 'web' ? [one.address ?? ''] : [],
  )
}

/** The addresses that the fake gives to the members of its pool. */
async function addressesOf(at: Bench): Promise<Record<string, string>> {
  const { signal } = new AbortController()
  const { readings } = await at.lb.observe('all', { signal, clock: at.clock })
  return Object.fromEntries(
    readings.flatMap((one) => (one.present ? [[one.ref.member, one.address ?? '']] : [])),
  )
}

describe('a pod that comes back under its name at another address', () => {
  it('serves at once where it is the only one', async () => {
    const at = bench('web-0')
    const loop = at.start({ owns: ({ ref }) => ref.member.startsWith('web-') })
    loop.set([pod('web-0', '10.9.0.2')])
    await at.clock.runUntil(loop.settled(), 60_000)
    expect(await serving(at)).toEqual(['10.9.0.2'])
    expect(at.states('web-0')).toEqual(['gone'])
    expect(loop.status()).toEqual([])
    await at.clock.runUntil(loop.close())
  })

  it('serves at once while the one before it has work that does not end', async () => {
    const at = bench('web-0', 'web-1', 'web-2')
    const { 'web-0': first = '', 'web-2': third = '' } = await addressesOf(at)
    at.lb.occupy(web('web-1'))
    const loop = at.start({ timeout: '1h' })
    loop.set([pod('web-0', first), pod('web-1', '10.9.0.2'), pod('web-2', third)])
    await at.clock.advance(1_000)
    expect((await serving(at)).toSorted()).toEqual([first, third, '10.9.0.2'].toSorted())
    expect(loop.status()).toMatchObject([{ ref: web('web-1'), want: 'absent', active: 1 }])
    await at.clock.runUntil(loop.close())
  })

  it('is added once where its name is free before its addition is written', async () => {
    const at = bench('web-0', 'web-1')
    const { 'web-1': second = '' } = await addressesOf(at)
    const set = at.tickets.set.bind(at.tickets)
    let held = false
    // The list of additions is written slowly, the tickets of drains are not.
    at.tickets.set = async (key, value) => {
      const isList = JSON.stringify(value).includes('"added"')
      if (held && isList) await new Promise<void>((go) => void at.clock.setTimeout(go, 10_000))
      await set(key, value)
    }
    const loop = at.start({ keepReady: 0 })
    loop.set([pod('web-0', '10.9.0.1'), pod('web-1', second)])
    held = true
    await at.clock.advance(100)
    at.lb.setBehind(web('web-0'), 'gone')
    await at.clock.runUntil(loop.settled(), 60_000)
    await at.clock.advance(30_000)
    expect((await serving(at)).toSorted()).toEqual([second, '10.9.0.1'].toSorted())
    await at.clock.runUntil(loop.close())
  })

  it('has a name of its own each time, also while those before it work', async () => {
    const at = bench('web-0')
    at.lb.occupy(web('web-0'))
    const loop = at.start({ timeout: '1h' })
    for (const address of ['10.9.0.2', '10.9.0.3', '10.9.0.4']) {
      loop.set([pod('web-0', address)])
      await at.clock.advance(3_000)
      expect(await serving(at)).toEqual([address])
    }
    await at.clock.runUntil(loop.close())
  })

  it('is the same member for the next process', async () => {
    const at = bench('web-0')
    const owns = (): boolean => false
    at.lb.occupy(web('web-0'))
    const first = at.start({ owns, timeout: '1h' })
    first.set([pod('web-0', '10.9.0.2')])
    await at.clock.advance(3_000)
    await at.clock.runUntil(first.close())
    const sent = at.sent()
    const second = at.start({ owns, timeout: '1h' })
    second.set([pod('web-0', '10.9.0.2')])
    await at.clock.advance(3_000)
    expect(at.sent()).toEqual(sent)
    second.set([pod('web-0', '10.9.0.3')])
    await at.clock.advance(10_000)
    const left = Object.values(await addressesOf(at))
    expect(left).toContain('10.9.0.3')
    expect(left).not.toContain('10.9.0.2')
    await at.clock.runUntil(second.close())
  })
})
