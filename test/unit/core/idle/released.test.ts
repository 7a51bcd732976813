import { expect, test } from 'vitest'
import { startDrain } from 'drainable'
import { recorder, web1 } from '../set-up.js'
import { balancer, seeThrough, withPresent } from '../balancer.js'

test.each([
  ['active', { active: 2 }],
  ['queued', { queued: 2 }],
] as const)('a process without counts that is released and %s is unread', async (_, figures) => {
  const { clock, lb } = balancer({ capabilities: { counts: 'none' } })
  seeThrough(lb, (snapshot) =>
    withPresent(snapshot, (reading) => ({
      ...reading,
      scopes: reading.scopes.map((scope) => ({ ...scope, ...figures, released: true })),
    })),
  )
  const seen = recorder()
  const run = startDrain(lb, web1, { clock, timeout: '5s', onEvent: seen.onEvent })
  await clock.advance(3_000)
  expect(run.why()).toMatchObject([{ code: 'unreadable' }])
  expect(run.why()[0]?.text).toMatch(/it says released, and \d active and \d queued/)
  const { outcome } = await clock.runUntil(run.done)
  expect(outcome).toBe('timeout')
  expect(seen.types()).not.toContain('idle')
  await run.release()
})
