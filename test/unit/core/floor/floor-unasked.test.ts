import { expect, test } from 'vitest'
import { drain, startDrain } from 'drainable'
import { only, web1, web2 } from '../set-up.js'
import { anotherObject, isHold, loseAnswer, rig, type Rig } from '../rig.js'

const WAIT = { timeout: '10m', onMinimum: 'wait' } as const

/** Two servers; the drain of web1 was given up while its hold had no answer. */
async function lostHold(late?: number): Promise<Rig> {
  const both = rig({
    pools: { web: ['web1', 'web2'] },
    capabilities: { lateBound: 10_000 },
  })
  const { clock, lb } = both
  loseAnswer(lb, clock, isHold, late)
  const lost = new AbortController()
  const ended = drain(lb, web1, { clock, timeout: '1m', signal: lost.signal }).catch(
    () => undefined,
  )
  await clock.advance(5)
  lost.abort(new Error('enough'))
  await clock.runUntil(ended)
  return both
}

test('a member found down counts as taken by the drain that holds it', async () => {
  const { clock, lb } = rig({ pools: { web: ['web1', 'web2'] } })
  lb.setBehind(web2, 'drain')
  const policy = { clock, ...WAIT, onOverrule: 'reapply', seal: false } as const
  await using held = startDrain(lb, web2, policy)
  await clock.runUntil(held.done)
  // An operator opens it; until it is put back it serves, but it is wished down.
  lb.setBehind(web2, 'ready')
  await using other = startDrain(anotherObject(lb), web1, { clock, ...WAIT })
  await clock.advance(50)
  expect(lb.state(web1)).toBe('ready')
  await clock.advance(10_000)
  expect([lb.state(web1), lb.state(web2)]).toEqual(['ready', 'drain'])
  expect(other.why()[0]?.code).toBe('pool-at-minimum')
})

test('a hold without an answer keeps its place after its drain has ended', async () => {
  const { clock, lb } = await lostHold(8_000)
  const refused = await clock.runUntil(
    drain(lb, web2, { clock }).catch((error: unknown) => error),
    60_000,
  )
  expect(refused).toMatchObject({ code: 'POOL_AT_MINIMUM' })
  expect((refused as Error).message).toContain('the hold of web/web1 has no answer')
  await clock.advance(60_000)
  // It came after all, and web2 serves.
  expect([lb.state(web1), lb.state(web2)]).toEqual(['drain', 'ready'])
})

test('that place is free once the hold can not come any more', async () => {
  const { clock, lb } = await lostHold()
  const run = startDrain(lb, web2, { clock, ...WAIT })
  await clock.advance(5_000)
  expect(lb.state(web2)).toBe('ready')
  expect(only(await clock.runUntil(run.done, 60_000)).outcome).toBe('idle')
  await run.release()
})
