import { describe, expect, test } from 'vitest'
import { held, started, type MemberRun, type RunOptions } from './member-run.js'

/** One process that counts work, but no arrivals. */
const UNCOUNTED = { scopes: { w1: { arrivals: undefined as never } } }
/** One whose product says when it has released the member, and has not yet. */
const AWAITED = { scopes: { w1: { arrivals: undefined as never, released: false } } }

/** Looks every 100 ms, answering what is sent. */
function run(member: MemberRun, ms: number): MemberRun {
  for (let passed = 0; passed < ms; passed += 100) {
    if (member.ledger.pending !== null) member.answer()
    member.look({ after: 100 })
  }
  return member
}

const texts = (member: MemberRun): readonly string[] => member.why.map(({ text }) => text)
const DOOR =
  'this product does not count arrivals, and the member was not closed to all clients: one can come between two looks'

describe('a member without arrivals', () => {
  test('is idle, not verified, if it is not sealed', () => {
    const member = run(held(UNCOUNTED), 4_000)
    expect(member.phase).toBe('idle')
    expect(texts(member)).toEqual([DOOR])
  })

  test('is verified by zeros from after the seal', () => {
    const member = run(held({ ...UNCOUNTED, seal: 'gentle' }), 3_500)
    expect(member.sentSoFar).toEqual(['hold drain', 'hold maint'])
    expect(run(member, 2_000).phase).toBe('draining')
    run(member, 1_500)
    expect(member.phase).toBe('idle')
    expect(texts(member)).toEqual([])
  })

  test('is verified in maint from the beginning', () => {
    const member = run(held({ ...UNCOUNTED, hold: 'maint' }), 4_000)
    expect(member.phase).toBe('idle')
    expect(texts(member)).toEqual([])
  })

  test('is proved anew once another client has closed it', () => {
    const member = run(held(UNCOUNTED), 2_000).set({ own: 'maint' })
    expect(run(member, 2_900).phase).toBe('draining')
    expect(run(member, 500).phase).toBe('idle')
    expect(texts(member)).toEqual([])
  })

  test('is verified by the word of the product', () => {
    const scopes = { w1: { arrivals: undefined as never, released: true } }
    const member = run(held({ scopes }), 4_000)
    expect(member.phase).toBe('idle')
    expect(texts(member)).toEqual([])
  })

  test('whose seal is refused is not verified', () => {
    const member = held({ ...UNCOUNTED, seal: 'gentle' })
    while (member.ledger.pending === null) member.look({ after: 100 })
    member.refuse()
    run(member, 500)
    expect(member.phase).toBe('idle')
    expect(texts(member)).toEqual([DOOR])
  })
})

describe('a product that has yet to say that the member is released', () => {
  const waiting = (options: RunOptions = {}): MemberRun =>
    run(held({ ...AWAITED, timeout: 20_000, ...options }), 10_000)

  test('is waited for, and the reason is given', () => {
    const member = waiting()
    expect(member.phase).toBe('draining')
    expect(member.codes).toEqual(['persistence'])
    expect(texts(member)[0]).toContain('has not said that the member is released')
  })

  test('is verified by its word', () => {
    const member = waiting().scope('w1', { released: true })
    expect(run(member, 200).phase).toBe('idle')
    expect(member.outcome).toBe('idle')
    expect(texts(member)).toEqual([])
  })

  test('is not waited for beyond the deadline, and not verified', () => {
    const member = run(waiting(), 11_000)
    expect(member.outcome).toBe('idle')
    expect(texts(member)).toEqual([DOOR])
  })

  test('with work at the deadline is a timeout', () => {
    const member = run(waiting().scope('w1', { active: 1 }), 11_000)
    expect(member.outcome).toBe('timeout')
  })

  test('that counts arrivals is not waited for', () => {
    const scopes = { w1: { released: false } }
    expect(waiting({ scopes }).phase).toBe('idle')
  })

  test('can still be closed by a cut at the deadline', () => {
    const member = waiting({ onTimeout: 'terminate', seal: 'gentle', maint: 'cuts' })
    run(member, 11_000)
    expect(member.sentSoFar).toEqual(['hold drain', 'hold maint'])
    run(member, 4_000)
    expect(member.outcome).toBe('idle')
  })

  test('is idle, not verified, if that cut is refused', () => {
    const member = waiting({ onTimeout: 'terminate', seal: 'gentle', maint: 'cuts' })
    while (member.ledger.pending === null) member.look({ after: 100 })
    member.refuse()
    run(member, 300)
    expect(member.outcome).toBe('idle')
    expect(texts(member)).toEqual([DOOR])
  })

  test('is waited for without end if there is no deadline', () => {
    const member = run(started(AWAITED).look().answer(), 60_000)
    expect(member.phase).toBe('draining')
  })
})
