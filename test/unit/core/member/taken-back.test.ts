import type { AdminState } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import type { FoundMember, LateChange, Ledger } from '../../../../src/core/member/record.js'
import { openGoal } from '../../../../src/core/member/wanted.js'
import { held, started, type MemberRun } from './member-run.js'

const DRAIN = { kind: 'drain' } as const
const UNDO = openGoal({ of: 'ours', since: 0, until: null, lateUntil: null })

function found(own: AdminState | 'unknown', identity = '10.0.0.1:80'): FoundMember {
  return { identity, own, serves: own === 'ready', native: null }
}

function lost(to: 'drain' | 'maint', lostAt = 0): LateChange {
  const change = { kind: 'hold', ref: { pool: 'web', member: 'web1' }, to } as const
  return { change, lostAt, until: null, lacked: null }
}

/** A drain that goes on from a ticket, and has its hold. */
function resumed(ticket: Partial<Ledger>, own: AdminState): MemberRun {
  const run = started({ goal: { kind: 'watch' }, own })
    .lay(DRAIN, undefined, ticket)
    .look()
  return run.ledger.pending === null ? run : run.answer('unchanged')
}

/** What an undo sends, once the member was read again. */
function undo(run: MemberRun): string | null {
  run.open().look()
  return run.sentSoFar.find((one) => one.startsWith('restore')) ?? null
}

describe('a drain from a ticket', () => {
  test('opens to what was found before our first change', () => {
    expect(undo(resumed({ found: found('ready'), set: 'drain' }, 'drain'))).toBe(
      'restore drain to ready',
    )
  })

  test('leaves what our changes may have led to alone', () => {
    const run = resumed({ found: found('ready'), set: 'drain', doubted: ['maint'] }, 'maint')
    expect(undo(run)).toBe(null)
  })

  test('takes a state that we had set before for ours in a new process', () => {
    const ticket = {
      found: found('ready'),
      set: 'maint',
      earlier: ['drain'],
      told: new Map([['w1', 'w1.0']]),
    } as const
    expect(undo(resumed(ticket, 'drain'))).toBe('restore drain to ready')
  })

  test('of an earlier member under the name tells nothing of this one', () => {
    const run = held().lay(DRAIN, undefined, { found: found('ready', '10.9.9.9:80'), set: 'maint' })
    expect(undoAll(run)).toBe('restore drain to ready')
  })
})

test('an undo that is over leaves what a later one has brought', () => {
  const run = started({ goal: { kind: 'watch' }, own: 'drain' })
  run.lay(UNDO, undefined, { found: found('drain') })
  run.lay(UNDO, undefined, { found: found('ready'), doubted: ['drain'] })
  run.put({ type: 'settle', claim: 2 })
  expect(run.ledger.doubted).toEqual(['drain'])
})

test('what our changes may have led to is over once a look shows less', () => {
  const run = started({ goal: { kind: 'watch' }, own: 'ready' })
  run.lay(UNDO, undefined, { found: found('drain'), doubted: ['maint'] }).look()
  expect(run.ledger.doubted).toEqual([])
  expect(run.claim.ending.ended?.outcome).toBe('restored')
})

/** What an undo of both sends. */
function undoAll(run: MemberRun): string | null {
  run.put({ type: 'end', claim: 1, outcome: 'aborted' }).put({ type: 'release', claim: 1 })
  return undo(run)
}

/** Looks show it in maint from now on, for as long as a lost change can come. */
function raised(run: MemberRun): MemberRun {
  run.set({ own: 'maint' }).look()
  if (run.ledger.pending !== null) run.answer('unchanged')
  return run.looks(2_000, 1_000)
}

describe('a ticket of a member that another call holds', () => {
  test('has the state found where it is the more open one', () => {
    const run = held({ own: 'drain', hold: 'maint' })
    run.lay(DRAIN, undefined, { found: found('ready'), set: 'drain' })
    expect(undoAll(run)).toBe('restore maint to ready')
  })

  test('has no say in it where it is the less open one', () => {
    const run = held().lay(DRAIN, undefined, { found: found('drain'), set: 'drain' })
    expect(undoAll(run)).toBe('restore drain to ready')
  })

  test('has no say in it where it changed nothing', () => {
    const run = held({ own: 'drain', hold: 'maint' }).lay(DRAIN, undefined, {
      found: found('ready'),
    })
    expect(undoAll(run)).toBe('restore maint to drain')
  })

  test('has no say in it where it had not read the member', () => {
    const run = held().lay(DRAIN, undefined, { found: found('unknown'), set: 'drain' })
    expect(undoAll(run)).toBe('restore drain to ready')
  })

  test('adds the states that it doubts', () => {
    const run = held().lay(DRAIN, undefined, {
      found: found('ready'),
      set: 'drain',
      doubted: ['maint'],
    })
    expect(undoAll(raised(run))).toBe(null)
  })

  test('adds its lost changes, and doubts a raise that was decided over another hold', () => {
    const run = held().lay(DRAIN, undefined, {
      found: found('ready'),
      set: null,
      late: [lost('maint')],
    })
    expect(undoAll(raised(run))).toBe(null)
  })

  test('keeps a raise over the same hold ours', () => {
    const run = held().lay(DRAIN, undefined, {
      found: found('ready'),
      set: 'drain',
      late: [lost('maint')],
    })
    expect(undoAll(raised(run))).toBe('restore maint to ready')
  })
})
