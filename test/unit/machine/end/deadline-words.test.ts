import { describe, expect, test } from 'vitest'
import { failure, held, idle, started, type MemberRun } from '../member-run.js'

const overdue = (run: MemberRun, silent: boolean): MemberRun =>
  run.put({ type: 'overdue', error: failure('CALL_TIMEOUT'), silent })

describe('the deadline of a drain whose hold could not be sent', () => {
  const unsent = (options = {}): MemberRun =>
    started(options).look({ after: 300 }).refuse(failure('UNREACHABLE', true))

  test('is unreachable if no look succeeds either', () => {
    const run = overdue(unsent(), true)
    expect(run.outcome).toBe('unreachable')
    expect(run.error?.code).toBe('UNREACHABLE')
  })

  test('is unreachable if the newest look failed', () => {
    expect(overdue(unsent().fail(), false).outcome).toBe('unreachable')
  })

  test('is a refusal if only the last look is missing', () => {
    expect(overdue(unsent(), false).outcome).toBe('refused')
  })

  test('is a refusal if looks succeed', () => {
    const run = started({ timeout: 500 }).look({ after: 300, took: 300 })
    expect(run.refuse(failure('UNREACHABLE', true)).look().outcome).toBe('refused')
  })

  test('is a refusal if the balancer refused and then fell silent', () => {
    const run = started().look().refuse(failure('REJECTED', true)).fail()
    expect(overdue(run, true).outcome).toBe('refused')
  })

  test('is unreachable by the missing look if nothing was refused', () => {
    const run = overdue(started(), true)
    expect(run.outcome).toBe('unreachable')
    expect(run.error?.code).toBe('CALL_TIMEOUT')
  })
})

describe('an idle member that is absent in one look', () => {
  const absent = (): MemberRun => idle({ timeout: 5_000 }).vanish().look()

  test('has no outcome until a second look', () => {
    expect(absent().outcome).toBe(null)
  })

  test('is gone at the second', () => {
    const run = absent().look({ after: 100 })
    expect(run.outcome).toBe('gone')
    expect(run.error?.code).toBe('MEMBER_GONE')
  })

  test('is gone in a late look that shows it at once', () => {
    const run = held({ timeout: 2_000 }).idle().vanish().look()
    run.wait(1_000).look()
    expect(run.outcome).toBe('gone')
  })

  test('is idle, as it was proved, at the deadline', () => {
    const run = idle({ timeout: 5_000 })
    run.vanish().look({ after: run.state.deadline! - run.now - 5 })
    expect(run.outcome).toBe(null)
    run.look({ after: 5 })
    expect(run.outcome).toBe('idle')
  })

  test('is gone at the second look, even after the deadline', () => {
    const run = idle({ timeout: 5_000 })
    run.vanish().look({ after: run.state.deadline! + 10 - run.now })
    expect(run.outcome).toBe('idle')
    expect(run.look({ after: 100 }).outcome).toBe('gone')
  })

  test('is not removed at the deadline if a removal was wished', () => {
    const run = idle({ timeout: 5_000, until: 'removed' })
    if (run.state.hold.pending !== null) run.refuse(failure('CONFLICT', true))
    run.vanish().look({ after: run.state.deadline! + 10 - run.now })
    expect([run.outcome, run.sent]).toEqual(['timeout', null])
  })
})

test('a drain that ended and still holds says when it is in force', () => {
  const run = overdue(held(), false)
  expect(run.outcome).toBe('timeout')
  expect(run.look().said).toContain('in-force')
})
