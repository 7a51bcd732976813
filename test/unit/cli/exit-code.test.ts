import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { DrainableError, type DrainReport, type MemberReport, type Outcome } from 'drainable'
import { EXIT, exitOfDrain, exitOfError, exitOfRoll, MEANING } from '../../../src/cli/exit-code.js'

function report(outcome: Outcome, more: Partial<MemberReport> = {}): DrainReport {
  const member: MemberReport = {
    ref: { pool: 'web', member: 'a' },
    outcome,
    phase: 'idle',
    wasAdmin: 'ready',
    held: true,
    verifiedIdle: true,
    sealed: true,
    lost: [],
    terminated: 0,
    elapsed: 1,
    why: [],
    ...more,
  }
  return { outcome, members: [member], elapsed: 1 }
}

describe('the exit status', () => {
  test.each([
    ['idle', EXIT.ok],
    ['removed', EXIT.ok],
    ['restored', EXIT.ok],
    ['terminated', EXIT.cut],
    ['proceeded', EXIT.cut],
    ['timeout', EXIT.timeout],
    ['overruled', EXIT.overruled],
    ['refused', EXIT.refused],
    ['aborted', EXIT.error],
    ['unreachable', EXIT.unreachable],
    ['gone', EXIT.missing],
  ] as const)('of a drain that ended as %s', (outcome, code) => {
    expect(exitOfDrain(report(outcome))).toBe(code)
  })

  test('of an idle that is not verified is its own', () => {
    expect(exitOfDrain(report('idle', { verifiedIdle: false }))).toBe(EXIT.unverified)
  })

  test('of a refused drain is that of its error', () => {
    const error = new DrainableError('FORBIDDEN', 'no right')
    expect(exitOfDrain(report('refused', { error }))).toBe(EXIT.rights)
  })

  test('of a roll is that of what stopped it, or of the server that failed', () => {
    const error = new DrainableError('ACTION_FAILED', 'COMMAND exited with 3')
    const roll = {
      outcome: 'stopped' as const,
      servers: [{ refs: [], outcome: 'failed' as const, attempts: 1, times: {}, error }],
      done: [],
      failed: [],
      untouched: [],
      leftDrained: [],
      leftAsFound: [],
      elapsed: 1,
    }
    const lease = new DrainableError('NOT_LEADER', 'another client has the lease')
    expect(exitOfRoll(roll)).toBe(EXIT.command)
    expect(exitOfRoll({ ...roll, error: lease })).toBe(EXIT.ticket)
    expect(exitOfError(new DrainableError('ROLL_STOPPED', 'stopped', { roll }))).toBe(EXIT.command)
  })

  test('of a foreign error is 1', () => {
    expect(exitOfError(new Error('x'))).toBe(EXIT.error)
  })
})

test('the table of docs/command.md is that of the code', () => {
  const page = readFileSync(new URL('../../../docs/command.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| (\d+) \| (.+?) \|$/gm)].map(([, code, words]) => [
    code,
    words,
  ])
  const expected = Object.entries(EXIT).map(([name, code]) => [
    String(code),
    MEANING[name as keyof typeof EXIT],
  ])
  expect(rows).toEqual(expected)
})
