import { describe, expect, test } from 'vitest'
import { idleTime } from '../../../src/core/member/idle.js'
import { held, type MemberRun } from '../core/member/member-run.js'

const from = (run: MemberRun) => idleTime([run.claimed])?.from

describe('the time since when a member has been idle', () => {
  test('is the first of its two samples while its processes live', () => {
    const run = held({ scopes: { w2: {} } })
      .looks(500)
      .idle()
    expect(from(run)).toBeLessThan(run.proof.verdict!.at - 500)
  })

  test('is the verdict if a process that held work has ended', () => {
    const run = held({ scopes: { w2: { active: 1, old: true } } }).looks(2_000)
    run.scope('w2', { active: 0, state: 'ended' }).idle()
    expect(from(run)).toBe(run.proof.verdict!.at)
  })

  test('is unknown if its drain ended in another way', () => {
    expect(idleTime([held().end('aborted').claimed])).toBe(null)
  })
})
