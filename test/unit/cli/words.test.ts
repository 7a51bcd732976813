import { describe, expect, test } from 'vitest'
import type { DrainPlan, LoadEvent, MemberReport, RollReport } from 'drainable'
import { DrainableError } from '../../../src/provider/error.js'
import { describeEvent } from '../../../src/cli/words/event.js'
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
      'web/web1: timeout after 1.9 s, left drained',
      '  2 in flight; wait',
      "ticket mine: 'drainable restore BALANCER' undoes it, 'drainable resume BALANCER' goes on with it",
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

  test('says the words of a refusal once', () => {
    const error = new DrainableError('FORBIDDEN', 'web/web1: Permission denied')
    const text = `'hold' was refused by the balancer: ${error.message}`
    const why = [{ code: 'refused', ref, text } as const]
    const members = [member({ outcome: 'refused', held: false, why, error })]
    const report = { outcome: 'refused', members, elapsed: 1_900 } as const
    expect(describeResult({ verb: 'drain', exitCode: 8, changed: false, report }).text).toBe(
      `web/web1: refused after 1.9 s\n  ${text}`,
    )
  })

  test('of a watch that was ended says the phase', () => {
    const members = [member({ outcome: 'aborted', phase: 'draining', held: false })]
    const report = { outcome: 'aborted', members, elapsed: 1_900 } as const
    expect(describeResult({ verb: 'watch', exitCode: 0, report }).text).toBe(
      'web/web1: draining, watched for 1.9 s',
    )
  })

  test('names an option of the library as its flag', () => {
    const error = {
      code: 'POOL_AT_MINIMUM',
      message: "keepReady is 1; onMinimum: 'wait' waits, keepReady: 0 lets the last one go",
    }
    expect(describeResult({ verb: 'drain', exitCode: 4, changed: false, error }).error).toBe(
      'drainable: --keep-ready is 1; --on-minimum wait waits, --keep-ready 0 lets the last one go',
    )
  })

  test('names an option that is switched off as its flag', () => {
    const error = { code: 'INVALID_OPTIONS', message: 'waitHealthy: false goes on without one' }
    expect(describeResult({ verb: 'roll', exitCode: 2, error }).error).toBe(
      'drainable: --no-wait-healthy goes on without one',
    )
  })

  test.each([
    [true, 'left drained'],
    [false, 'as it was before'],
  ])('of an aborted drain says how the member is: held %s', (held, expected) => {
    const members = [member({ outcome: 'aborted', held })]
    const report = { outcome: 'aborted', members, elapsed: 1_900 } as const
    expect(describeResult({ verb: 'drain', exitCode: 130, changed: held, report }).text).toBe(
      `web/web1: aborted after 1.9 s, ${expected}`,
    )
  })

  test('of an undo says from when the time counts', () => {
    const members = [member({ outcome: 'restored', held: false, elapsed: 396_000 })]
    const report = { outcome: 'restored', members, elapsed: 396_000 } as const
    expect(describeResult({ verb: 'restore', exitCode: 0, report }).text).toBe(
      'web/web1: restored, 6 m 36 s after the drain began',
    )
  })

  test('of a roll names each server and its members', () => {
    const roll: RollReport = {
      outcome: 'done',
      servers: [
        {
          address: '10.0.0.7',
          refs: [ref],
          outcome: 'done',
          attempts: 1,
          times: { drain: 2_000, act: 61_000, healthy: 500 },
        },
      ],
      done: [],
      failed: [],
      untouched: [],
      leftDrained: [],
      leftAsFound: [ref],
      elapsed: 60_000,
    }
    expect(describeResult({ verb: 'roll', exitCode: 0, roll }).text.split('\n')).toEqual([
      'server    members   outcome  calls  drain  command  healthy  error',
      '10.0.0.7  web/web1  done     1      2 s    1 m 1 s  500 ms',
      'left as found: web/web1',
      'done after 1 m',
    ])
  })

  test('of a roll names an option in the error of a server as its flag', () => {
    const message = "take its members one by one with group: 'ref'"
    const error = new DrainableError('POOL_AT_MINIMUM', message)
    const server = { refs: [ref], outcome: 'failed', attempts: 0, times: {}, error } as const
    const lists = { done: [], failed: [], untouched: [], leftDrained: [], leftAsFound: [] }
    const roll: RollReport = { outcome: 'stopped', servers: [server], ...lists, elapsed: 1 }
    expect(describeResult({ verb: 'roll', exitCode: 4, roll }).text).toContain(
      'take its members one by one with --group ref',
    )
  })

  test('names a call of the library as its verb', () => {
    const message = 'roll(): it stopped; resumeRoll() goes on with its ticket, ready() opens it'
    const error = { code: 'ROLL_STOPPED', message }
    expect(describeResult({ verb: 'roll', exitCode: 4, error }).error).toBe(
      "drainable: it stopped; 'resume' goes on with its ticket, 'ready' opens it",
    )
  })

  test('of a roll that did not begin is its error alone', () => {
    const error = new DrainableError('INVALID_OPTIONS', 'canary: the roll has 1 server, found 9')
    const lists = { done: [], failed: [], untouched: [], leftDrained: [], leftAsFound: [] }
    const roll: RollReport = { outcome: 'stopped', servers: [], ...lists, elapsed: 92, error }
    const words = describeResult({ verb: 'roll', exitCode: 2, roll, error })
    expect(words.text).toBe('')
    expect(words.error).toContain('found 9')
  })

  test('of a plan names an option as its flag', () => {
    const text = "  leave  web/web1  onMinimum: 'wait' waits for it"
    const plan = { text, refused: [], changes: [] } as unknown as DrainPlan
    expect(describeResult({ verb: 'plan', exitCode: 0, plan }).text).toBe(
      '  leave  web/web1  --on-minimum wait waits for it',
    )
  })

  test('of no orphans says so', () => {
    expect(describeResult({ verb: 'orphans', exitCode: 0, orphans: [] }).text).toBe(
      'no drain is left over',
    )
  })
})

test('a line about a load has the name of its member once', () => {
  const at = '2026-01-01T00:00:00.000Z'
  const text = 'web/web1 has not taken the drain yet'
  const event: LoadEvent = {
    type: 'load',
    at,
    ref,
    active: 0,
    oldest: null,
    queued: 0,
    complete: true,
    why: [{ code: 'not-in-force', ref, text }],
    phase: 'draining',
    own: 'drain',
    health: 'up',
    scopes: [],
    deadline: null,
  }
  expect(describeEvent(event)).toBe(`${at}  web/web1: has not taken the drain yet`)
})
