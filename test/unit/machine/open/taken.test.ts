import { describe, expect, test } from 'vitest'
import type { AdminState, LoadScope, PresentReading } from 'drainable/provider'
import { nameUntaken, untaken } from '../../../../src/core/machine/decide/taken.js'

const scope = (more: Partial<LoadScope> = {}): LoadScope => ({
  scope: 'p1',
  incarnation: 'i1',
  state: 'read',
  sampledAt: 1,
  active: 0,
  queued: 0,
  ...more,
})

const reading = (scopes: readonly LoadScope[], inherited?: AdminState): PresentReading => ({
  ref: { pool: 'web', member: 'a' },
  present: true,
  identity: 'a',
  own: 'ready',
  serves: true,
  health: 'up',
  scopes,
  ...(inherited === undefined ? {} : { inherited }),
})

describe('a process has taken the opening', () => {
  test.each<[string, Partial<LoadScope>, boolean]>([
    ['that was read and tells nothing of its state', {}, true],
    ['that is ready', { admin: 'ready' }, true],
    ['that is still at drain', { admin: 'drain' }, false],
    ['whose state is not known', { admin: 'unknown' }, false],
    ['that has not taken it', { inForce: false }, false],
    ['that has not taken it, though its state is right', { inForce: false, admin: 'ready' }, false],
    ['that takes no clients', { open: false, inForce: false }, true],
    ['that takes clients', { open: true, admin: 'drain' }, false],
    ["that can't be read", { state: 'unread' }, false],
    ["that can't be read, and has taken it", { state: 'unread', inForce: true }, true],
    ['that has ended', { state: 'ended', inForce: false }, true],
    ['that was replaced', { old: true, inForce: false }, true],
  ])('%s', (_, more, taken) => {
    expect(untaken(reading([scope(more)]), 'ready')).toHaveLength(taken ? 0 : 1)
  })

  test.each<[AdminState, AdminState, AdminState, boolean]>([
    ['ready', 'drain', 'drain', true],
    ['ready', 'drain', 'maint', false],
    ['drain', 'ready', 'drain', true],
    ['drain', 'maint', 'maint', true],
    ['maint', 'drain', 'maint', true],
  ])('opened to %s under an inherited %s, and at %s', (to, inherited, admin, taken) => {
    expect(untaken(reading([scope({ admin })], inherited), to)).toHaveLength(taken ? 0 : 1)
  })
})

test.each<[Partial<LoadScope>, string]>([
  [{ admin: 'drain' }, 'p1 is at drain'],
  [{ admin: 'drain', inForce: false }, 'p1 has not taken it'],
  [{ inForce: false }, 'p1 has not taken it'],
  [{ state: 'unread' }, "p1 can't be read"],
  [{ state: 'unread', note: 'no answer' }, "p1 can't be read (no answer)"],
])('a process with %j is named', (more, words) => {
  expect(nameUntaken(scope(more))).toBe(words)
})
