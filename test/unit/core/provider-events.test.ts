/** Events of members that other clients drain, for listeners on the provider itself. */
import { expect, test } from 'vitest'
import { combineProviders, drain, ready, startDrain, withEvents } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'
import type { Snapshot } from 'drainable/provider'
import { web1, web2 } from './set-up.js'

test('a member that was out before anybody listened is told so', async () => {
  const lb = withEvents(
    fakeProvider({ pools: { web: ['web1', 'web2'] }, instance: 'provider-events-before' }),
  )
  lb.setBehind(web1, 'maint')
  const heard: [string, boolean | undefined][] = []
  lb.on('idle', ({ ref, alreadyOut }) => heard.push([ref.member, alreadyOut]))
  await expect.poll(() => heard).toEqual([['web1', true]])
  lb.setBehind(web2, 'drain')
  await expect.poll(() => heard.slice(1)).toEqual([['web2', undefined]])
  await lb.close()
})

test('a combined provider tells it of the members of its parts', async () => {
  const edge = fakeProvider({ pools: { web: ['web1', 'web2'] }, instance: 'provider-events-part' })
  edge.setBehind(web1, 'maint')
  await using all = combineProviders({ edge })
  const heard: [string | undefined, boolean | undefined][] = []
  all.on('idle', ({ ref, alreadyOut }) => heard.push([ref.balancer, alreadyOut]))
  await expect.poll(() => heard).toEqual([['edge', true]])
})

test.each([true, false])('no second end for one ready() (drained by us: %s)', async (isOurs) => {
  const instance = `provider-events-end-${isOurs}`
  const lb = withEvents(fakeProvider({ pools: { web: ['web1', 'web2', 'web3'] }, instance }))
  const ends: string[] = []
  const idle: string[] = []
  lb.on('end', ({ outcome }) => ends.push(outcome))
  lb.on('idle', ({ ref }) => idle.push(ref.member))
  if (isOurs) await drain(lb, web1, { timeout: '30s', settle: '50ms' })
  else lb.setBehind(web1, 'maint')
  await expect.poll(() => idle).toEqual(['web1'])
  await ready(lb, web1)
  // Another member's idle is told by a later look: web1 was looked at again by then.
  lb.setBehind(web2, 'drain')
  await expect.poll(() => idle).toEqual(['web1', 'web2'])
  expect(ends).toEqual(isOurs ? ['idle', 'restored'] : ['restored'])
  await lb.close()
})

// The search for drained members and the watch of one look at different moments.
test('a member seen open before its watch began is told as active', async () => {
  const fake = fakeProvider({ pools: { web: ['web1', 'web2'] }, instance: 'provider-events' })
  const observe = fake.observe.bind(fake)
  let held: Snapshot | undefined
  let opened = false
  let searched = 0
  fake.observe = async (refs, context) => {
    const snapshot = await observe(refs, context)
    if (refs === 'all') {
      if (opened) searched += 1
      return snapshot
    }
    if (!opened) held = snapshot
    return opened && searched < 2 ? held! : snapshot
  }
  const lb = withEvents(fake)
  const phases: string[] = []
  const met = Promise.withResolvers<undefined>()
  lb.on('phase', ({ to }) => phases.push(to))
  lb.on('load', ({ active }) => {
    if (active === 1) met.resolve(undefined)
  })
  lb.occupy(web1)
  lb.setBehind(web1, 'drain')
  await met.promise
  opened = true
  lb.setBehind(web1, 'ready')
  await expect.poll(() => phases).toEqual(['draining', 'active'])
  expect(searched).toBeGreaterThan(0)
  await lb.close()
})

test('no second end for a drain whose listener lets go of it', async () => {
  const clock = fakeClock()
  const pools = { web: ['web1', 'web2'] }
  const lb = withEvents(fakeProvider({ pools, clock, instance: 'provider-events-release' }))
  const ends: string[] = []
  const run = startDrain(lb, web1, { clock, timeout: '30s' })
  lb.on('end', ({ outcome }) => {
    ends.push(outcome)
    void run.release()
  })
  await clock.runUntil(run.done)
  expect(ends).toEqual(['idle'])
  await lb.close()
})

test('ready() over several balancers says one end, for all of them', async () => {
  const pools = { web: ['web1', 'web2'] }
  const a = fakeProvider({ pools, instance: 'provider-events-ready-a' })
  const b = fakeProvider({ pools, instance: 'provider-events-ready-b' })
  await using all = combineProviders({ a, b })
  a.setBehind(web1, 'drain')
  const ends: [string, number][] = []
  all.on('end', ({ outcome, report }) => ends.push([outcome, report.members.length]))
  await ready(all, [
    { ...web1, balancer: 'a' },
    { ...web1, balancer: 'b' },
  ])
  expect(ends).toEqual([['restored', 2]])
})
