import { describe, expect, test } from 'vitest'
import type { LoadScope } from '../../../../src/provider/contract.js'
import { expectScopes } from '../../../../src/core/member/proof/scopes.js'
import { held, idle, type MemberRun } from './member-run.js'

/** A look that others have made stale has listed these processes. */
function listed(run: MemberRun, ...scopes: readonly Partial<LoadScope>[]): MemberRun {
  const [first] = run.reading(run.now).scopes
  const all = scopes.map((scope) => ({ ...first!, ...scope }))
  const { claim, record } = run
  const expecting = { ...claim, proof: expectScopes(claim.proof, all) }
  const claims = record.claims.map((one) => (one === claim ? expecting : one))
  run.record = { ...record, claims }
  return run
}

describe('a process listed only by a stale look', () => {
  test('is known and unread, and its counts do not count', () => {
    const run = listed(held(), { scope: 'w2', active: 7, incarnation: 'w2.1' })
    expect([...run.proof.scopes.keys()]).toEqual(['w1', 'w2'])
    expect(run.proof.scopes.get('w2')).toMatchObject({
      last: { scope: 'w2', state: 'unread' },
      read: null,
      quietFrom: 0,
      arrivalsAtEffect: null,
    })
  })

  test('is read or has ended before idle is said', () => {
    const run = listed(held(), { scope: 'w2' }).looks(5_000)
    expect(run.phase).toBe('draining')
    expect(run.scope('w2', { state: 'ended' }).looks(3_000).phase).toBe('idle')
    expect(listed(held(), { scope: 'w2' }).scope('w2', { active: 0 }).looks(5_000).phase).toBe(
      'idle',
    )
  })

  test('is not expected if it had ended', () => {
    const run = listed(held(), { scope: 'w2', state: 'ended' })
    expect([...run.proof.scopes.keys()]).toEqual(['w1'])
  })

  test('changes nothing for a known process', () => {
    const run = idle()
    const track = run.proof.scopes.get('w1')
    listed(run, { scope: 'w1', active: 9 }, { scope: 'w2' })
    expect(run.proof.scopes.get('w1')).toBe(track)
    expect(run.proof.scopes.has('w2')).toBe(true)
  })
})
