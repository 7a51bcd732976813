/** Events of members that other clients drain, for listeners on the provider itself. */
import { expect, test } from 'vitest'
import { withEvents } from 'drainable'
import { fakeProvider } from 'drainable/testing'
import type { Snapshot } from 'drainable/provider'
import { web1 } from './set-up.js'

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
