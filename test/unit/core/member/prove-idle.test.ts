import { describe, expect, test } from 'vitest'
import { proveIdle } from '../../../../src/core/member/proof/prove.js'
import type { ClaimedMember } from '../../../../src/core/member/claimed.js'
import { failure, held, idle, type MemberRun } from './member-run.js'

/** A drain without a deadline of whose member everything has been seen that idle needs. */
function quiet(): MemberRun {
  return idle()
}

interface Change {
  readonly claim?: Partial<ClaimedMember['claim']>
  readonly facts?: Partial<ClaimedMember['facts']>
  readonly elsewhere?: ClaimedMember['elsewhere']
}

function proof({ claimed, now }: MemberRun, { claim, facts, elsewhere }: Change = {}) {
  const seen: ClaimedMember = {
    ...claimed,
    claim: { ...claimed.claim, ...claim },
    facts: { ...claimed.facts, ...facts },
    elsewhere: elsewhere ?? claimed.elsewhere,
  }
  return proveIdle(seen, now, 0)
}

describe('the proof of idle', () => {
  test('exists if all four rules hold', () => {
    expect(proof(quiet())).toMatchObject({ arrivals: 'unchanged' })
  })

  test('is null while no hold is in effect', () => {
    const run = quiet()
    expect(proof(run, { claim: { proof: { ...run.proof, effectiveSince: null } } })).toBe(null)
  })

  test('is null while the balancer can not be read', () => {
    const run = quiet()
    const unread = { error: failure('CONNECTION_LOST'), askedAt: run.now }
    expect(proof(run, { facts: { unread } })).toBe(null)
  })

  test('is null while the own state is lower than wished', () => {
    expect(proof(quiet(), { claim: { wish: 'maint' } })).toBe(null)
    expect(proof(quiet(), { claim: { wish: 'none' } })).toBe(null)
  })

  test('is null before a first look', () => {
    expect(proof(quiet(), { facts: { last: null } })).toBe(null)
  })

  test('is null while the goal is to open', () => {
    expect(proof(quiet().open(), { claim: { proof: quiet().proof } })).toBe(null)
  })

  test('is null while no process has ever been seen', () => {
    const run = held().unlist('w1')
    expect(proof(run, { claim: { proof: { ...run.proof, scopes: new Map() } } })).toBe(null)
  })

  test('is null while another view shows a process at work', () => {
    const run = quiet()
    const [work] = run.reading(run.now).scopes
    expect(proof(run, { elsewhere: [{ ...work!, scope: 'w2', active: 1 }] })).toBe(null)
  })
})
