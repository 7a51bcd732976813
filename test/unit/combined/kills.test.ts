import { describe, test } from 'vitest'
import { combineProviders, restore, resumeDrain, startDrain, type Ticket } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { withHost } from '../../model/user/host.js'
import { Mortal, type Death } from '../../model/user/mortal.js'
import { UserProcess } from '../../model/user/user-process.js'
import { AT_ANY, expectEveryDeath } from '../../support/deaths.js'
import { bare, jsonStore } from './set-up.js'

/** More calls than one drain has. */
const MOST = 500
/** Interval of looks in milliseconds. Few looks are enough, since dying at one or at the next is the same. */
const PACE = 100

/** How another process deals with what the dead one has left. Both end with an undo. */
type Recovery = 'restore' | 'resume'

/** A drain over two balancers whose process dies at one of its calls. */
async function play(
  death: Death,
  recovery: Recovery,
): Promise<{ died: boolean; wrong: readonly string[] }> {
  const clock = fakeClock(1_000, Date.UTC(2026, 0, 1))
  const leave = withHost({ wall: () => clock.wall(), uptime: () => clock.now(), random: () => 0.5 })
  const pools = { web: ['web1', 'web2'] }
  const capabilities = { minInterval: PACE }
  const sides = ['a', 'b'].map((instance) => fakeProvider({ pools, clock, instance, capabilities }))
  const tickets = jsonStore()
  const wrong: string[] = []
  const end = sides[1]?.occupy(bare)
  clock.setTimeout(() => end?.(), 3_000)
  const judgeIdle = (): void => {
    for (const side of sides)
      if (side.load(bare) > 0 || side.state(bare) === 'ready')
        wrong.push(`idle is said, and ${side.instance} has work or is open`)
  }
  const partsOf = (of: Mortal) => {
    const [a, b] = sides.map((lb) => of.balancer(lb))
    return combineProviders({ a: a!, b: b! })
  }
  try {
    const first = new UserProcess(1, clock)
    const of = new Mortal(first, death)
    let over = false
    const both = ['a', 'b'].map((balancer) => ({ ...bare, balancer }))
    const policy = { clock: first.clock, tickets: of.store(tickets), id: 'job' }
    const run = first.run(() => startDrain(partsOf(of), both, policy))
    void run.done
      .then(({ outcome }) => {
        if (outcome === 'idle') judgeIdle()
        return run.restore()
      })
      .then(() => (over = true))
    const isOver = (): boolean => over || !first.alive
    for (let i = 0; i < 600 && !isOver(); i += 1) await clock.advance(100)
    const died = !first.alive
    const named: string[] = []
    const ticket = (await tickets.get('job')) as Ticket | undefined
    if (ticket !== undefined) {
      const next = new UserProcess(2, clock)
      const all = partsOf(new Mortal(next))
      const options = { clock: next.clock, tickets }
      if (recovery === 'resume') {
        const resumed = next.run(() => resumeDrain(all, ticket, options))
        const { outcome } = await clock.runUntil(resumed.done)
        if (outcome === 'idle') judgeIdle()
        else wrong.push(`it ends ${outcome}`)
        await clock.runUntil(resumed.restore())
      } else {
        const report = await clock.runUntil(next.run(() => restore(all, ticket, options)))
        // An announced hold without an answer has no certain owner: it is left alone and reported.
        for (const { ref, error } of report.members)
          if (error !== undefined) named.push(ref.balancer ?? '')
      }
    }
    for (const side of sides)
      if (side.state(bare) !== 'ready' && !named.includes(side.instance))
        wrong.push(`it is left ${side.state(bare)} on ${side.instance}`)
    if (tickets.map.has('job') && named.length === 0) wrong.push('the ticket is kept')
    return { died, wrong: wrong.map((what) => `call ${death.at}: ${what}`) }
  } finally {
    leave()
  }
}

describe(`a drain over two balancers whose process dies at ${AT_ANY} of its calls`, () => {
  test.each([
    ['done', 'resume'],
    ['lost', 'resume'],
    ['done', 'restore'],
    ['lost', 'restore'],
  ] as const)('whose call is %s can be %s by another process', async (last, recovery) => {
    const calls = { least: 15, most: MOST }
    await expectEveryDeath((death) => play(death, recovery), last, calls)
  })
})
