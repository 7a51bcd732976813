import { describe, expect, test } from 'vitest'
import { proveIdle } from '../../../../src/core/machine/proof.js'
import { failure, held, idle, type MemberRun } from '../member-run.js'

/** A drain without a deadline of whose member everything has been seen that idle needs. */
function quiet(): MemberRun {
  return idle()
}

function proof(run: MemberRun, change: Partial<MemberRun['state']> = {}) {
  return proveIdle({ ...run.state, ...change }, run.policy, run.now, 0)
}

describe('the proof of idle', () => {
  test('exists if all four rules hold', () => {
    expect(proof(quiet())).toMatchObject({ arrivals: 'unchanged' })
  })

  test('is null while no hold is in effect', () => {
    const run = quiet()
    expect(proof(run, { proof: { ...run.state.proof, effectiveSince: null } })).toBe(null)
  })

  test('is null while the balancer can not be read', () => {
    const run = quiet()
    const unread = { error: failure('CONNECTION_LOST'), askedAt: run.now }
    expect(proof(run, { unread })).toBe(null)
  })

  test('is null while the own state is lower than wished', () => {
    const run = quiet()
    expect(proof(run, { hold: { ...run.state.hold, wish: 'maint' } })).toBe(null)
    expect(proof(run, { hold: { ...run.state.hold, wish: 'none' } })).toBe(null)
  })

  test('is null before a first look', () => {
    expect(proof(quiet(), { last: null })).toBe(null)
  })

  test('is null while the goal is to open', () => {
    expect(proof(quiet().open(), { proof: quiet().state.proof })).toBe(null)
  })

  test('is null while no process has ever been seen', () => {
    const run = held().unlist('w1')
    expect(proof(run, { proof: { ...run.state.proof, scopes: new Map() } })).toBe(null)
  })
})
