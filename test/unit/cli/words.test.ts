import { describe, expect, test } from 'vitest'
import type { MemberReport, RollReport } from 'drainable'
import { describeResult } from '../../../src/cli/words/result.js'

const ref = { pool: 'web', member: 'web1' }

function member(more: Partial<MemberReport> = {}): MemberReport {
  return {
    ref,
    outcome: 'idle',
    phase: 'idle',
    wasAdmin: 'ready',
    held: true,
    verifiedIdle: true,
    sealed: true,
    lost: [],
    terminated: 0,
    elapsed: 1_900,
    why: [],
    ...more,
  }
}

describe('a result in words', () => {
  test('says the outcome, the reasons and what to do', () => {
    const why = [{ code: 'in-flight', ref, text: '2 in flight', hint: 'wait' } as const]
    const members = [member({ outcome: 'timeout', why, held: true })]
    const report = { outcome: 'timeout', members, elapsed: 1_900 } as const
    const error = { code: 'DRAIN_TIMEOUT', message: 'the deadline passed' }
    const words = describeResult({
      verb: 'drain',
      exitCode: 3,
      changed: true,
      report,
      error,
      ticket: 'mine',
    })
    expect(words.text.split('\n')).toEqual([
      'web/web1: timeout after 1.9 s',
      '  2 in flight; wait',
      "ticket mine: 'drainable restore' undoes it, 'drainable resume' goes on with it",
    ])
    expect(words.error).toBe('drainable: the deadline passed')
  })

  test('says that an idle is not verified', () => {
    const members = [member({ verifiedIdle: false })]
    const report = { outcome: 'idle', members, elapsed: 1 } as const
    expect(describeResult({ verb: 'drain', exitCode: 10, changed: true, report }).text).toBe(
      'web/web1: idle, not verified after 1.9 s',
    )
  })

  test('of a roll names each server and its members', () => {
    const roll: RollReport = {
      outcome: 'done',
      servers: [{ address: '10.0.0.7', refs: [ref], outcome: 'done', attempts: 1 }],
      done: [],
      failed: [],
      untouched: [],
      leftDrained: [],
      leftAsFound: [ref],
      elapsed: 60_000,
    }
    expect(describeResult({ verb: 'roll', exitCode: 0, roll }).text.split('\n')).toEqual([
      'server    members   outcome  calls  error',
      '10.0.0.7  web/web1  done     1',
      'left as found: web/web1',
      'done after 1 m',
    ])
  })

  test('of no orphans says so', () => {
    expect(describeResult({ verb: 'orphans', exitCode: 0, orphans: [] }).text).toBe(
      'no drain is left over',
    )
  })
})
