import { expect, test } from 'vitest'
import { held, START, started, type MemberRun } from '../member-run.js'

const TIMEOUT = 5_000

/** A drain of a product that counts no arrivals, with a seal that was answered. */
function sealed(): MemberRun {
  const scopes = { w1: { arrivals: undefined as never } }
  const run = held({ seal: 'gentle', timeout: TIMEOUT, scopes })
  for (let looks = 0; looks < 48 && run.sent !== 'hold maint'; looks++) run.look({ after: 100 })
  expect(run.sent).toBe('hold maint')
  return run.answer()
}

test('without arrivals a seal begins the proof anew', () => {
  const run = sealed().look()
  expect(run.said).not.toContain('idle')
  expect(run.outcome).toBe(null)
})

test('without arrivals a seal seen at the deadline ends as idle, not verified', () => {
  const run = sealed()
  run.look({ after: START + TIMEOUT - run.now })
  expect(run.outcome).toBe('idle')
  expect(run.why.map(({ text }) => text).join()).toContain('does not count arrivals')
})

test('without arrivals a watched member that vanishes in maint is verified', () => {
  const none = { arrivals: undefined as never }
  const run = started({
    goal: { kind: 'watch' },
    own: 'maint',
    scopes: { w1: { ...none, active: 1 } },
  })
  run
    .look()
    .look()
    .vanish()
    .look()
    .scope('w1', { ...none, active: 0 })
    .looks(4_000)
  expect(run.all('idle')).toHaveLength(1)
  expect(run.why.map(({ text }) => text).join()).not.toContain('does not count arrivals')
})
