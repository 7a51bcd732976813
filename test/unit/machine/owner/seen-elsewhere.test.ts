import { describe, expect, test } from 'vitest'
import { seenElsewhere } from '../../../../src/core/machine/ledger/foreign.js'
import type { Sight } from '../../../../src/core/machine/input.js'
import { lateChange } from '../../../../src/core/machine/ledger/changes.js'
import { shareHolds } from '../../../../src/core/machine/ledger/late.js'
import { WEB1, failure, held, idle, type MemberRun } from '../member-run.js'

const SAME = new Map([['w1', 'w1.1']])
const OTHER = new Map([['w1', 'w1.2']])

/** What another run of this process saw just now; returns whether this run took anything from it. */
function see(run: MemberRun, sight: Partial<Sight> = {}): boolean {
  run.wait(10)
  const before = run.state
  run.state = seenElsewhere(before, {
    own: 'ready',
    identity: '10.0.0.1:80',
    askedAt: run.now,
    at: run.now,
    incarnations: SAME,
    ...sight,
  })
  return run.state !== before
}

/** The ledger in words. */
function ledger({ state }: MemberRun): readonly string[] {
  return state.hold.changes.map(({ kind, to, state: how }) => `${kind} ${String(to)} ${how}`)
}

/** The same run with a change of its own that has no answer. */
function withLate(run: MemberRun, kind: 'hold' | 'restore', to: 'drain' | 'ready'): MemberRun {
  const change =
    kind === 'hold'
      ? { kind, ref: WEB1, to: 'drain' as const }
      : { kind, ref: WEB1, expect: 'drain' as const, to }
  const late = lateChange({ change, before: 'unknown' }, run.now)
  run.state = { ...run.state, hold: { ...run.state.hold, late: [late] } }
  return run
}

const aborted = (): MemberRun => held().look().put({ type: 'end', outcome: 'aborted' })

describe('a lower state that another run saw of a member held by a drain', () => {
  test('is noted as taken back if the processes are the same', () => {
    const run = held().look()
    expect(see(run)).toBe(true)
    expect(ledger(run)).toEqual(['hold drain applied', 'restore ready unchanged'])
    expect(run.state.hold.changes.at(-1)?.at).toBe(run.now)
    expect(run.state.hold.incarnations).toEqual(SAME)
    expect(see(run)).toBe(false) // it is known
    expect(run.set({ own: 'drain' }).look().open().look().outcome).toBe('overruled')
  })

  test('is noted for a held idle too', () => {
    const run = idle().settle()
    see(run)
    expect(ledger(run)).toContain('restore ready unchanged')
  })

  test('is noted where one of them could not be read', () => {
    const run = held().look()
    see(run, { incarnations: new Map([['w1', '']]) })
    expect(ledger(run)).toEqual(['hold drain applied', 'restore ready unchanged'])
    expect(run.state.hold.incarnations).toEqual(SAME)
  })

  test('is left to the own look if another process shows it', () => {
    const unread = new Map([...SAME, ['w2', '']])
    for (const incarnations of [OTHER, new Map([...SAME, ['w2', 'w2.1']]), unread])
      for (const run of [held().look(), idle().settle()]) {
        const { hold } = run.state
        see(run, { incarnations })
        expect(run.state.hold).toEqual(hold)
      }
  })

  test('is ignored if no process was known', () => {
    for (const incarnations of [SAME, OTHER]) {
      const run = held().look()
      run.state = { ...run.state, hold: { ...run.state.hold, incarnations: null } }
      expect(see(run, { incarnations })).toBe(false)
    }
  })

  test('is ignored if it is as high as it was set', () => {
    for (const own of ['drain', 'maint'] as const) expect(see(held().look(), { own })).toBe(false)
  })

  test('is ignored in a look asked for before the hold had its answer', () => {
    const run = held().look()
    const { confirmedAt } = run.state.hold
    expect(see(run, { askedAt: confirmedAt })).toBe(false)
    expect(see(run, { askedAt: confirmedAt + 1 })).toBe(true)
  })

  test('is ignored for another member of the same name', () => {
    expect(see(held().look(), { identity: 'x' })).toBe(false)
  })

  test('is ignored while a change is under way', () => {
    const run = held().look().open().look()
    expect(run.sent).toBe('restore drain to ready')
    expect(see(run)).toBe(false)
  })

  test('is noted as undone if an unanswered undo of ours may have done it', () => {
    const run = withLate(held().look(), 'restore', 'ready')
    expect(see(run)).toBe(true)
    expect(ledger(run)).toEqual(['hold drain applied', 'restore ready applied'])
  })

  test('was not done by an undo that leads elsewhere, nor by a hold', () => {
    const up = withLate(held({ hold: 'maint' }).look(), 'hold', 'drain')
    expect(see(up, { own: 'drain' })).toBe(true)
    expect(ledger(up)).toEqual(['hold maint applied', 'restore drain unchanged'])
    const other = withLate(held().look(), 'restore', 'drain')
    expect(see(other)).toBe(true)
    expect(ledger(other)).toEqual(['hold drain applied', 'restore ready unchanged'])
  })
})

/** A drain that still looks, whose hold another run saw forgotten by a process that began since. */
function forgotten(run: MemberRun, sight: Partial<Sight> = {}): MemberRun {
  run.scope('w1', { incarnation: 'w1.2' })
  see(run, { incarnations: OTHER, ...sight })
  return run
}

describe('what is found as a drain had set it in a process that another run saw open', () => {
  test('is another client’s: an undo leaves it alone', () => {
    const run = forgotten(held().look()).look()
    expect(ledger(run)).toEqual(['hold drain applied', 'restore ready unchanged'])
    expect(run.phase).toBe('draining')
    expect(run.open().look().outcome).toBe('overruled')
  })

  test('is another client’s where the next look is that of the undo', () => {
    expect(forgotten(held().look()).open().look().outcome).toBe('overruled')
  })

  test('is another client’s beside a process that nobody could read', () => {
    const run = held({ scopes: { w2: {} } }).look()
    const incarnations = new Map([...OTHER, ['w2', '']])
    forgotten(run, { incarnations }).scope('w2', { state: 'unread' }).look()
    expect(ledger(run)).toContain('restore ready unchanged')
    const unknown = held({ scopes: { w2: { state: 'unread' } } }).look()
    forgotten(unknown, { incarnations }).look()
    expect(ledger(unknown)).toContain('restore ready unchanged')
  })

  test('is ours in a newer process, which may have a state file', () => {
    const run = forgotten(held().look()).scope('w1', { incarnation: 'w1.3' }).look()
    expect(ledger(run)).toEqual(['hold drain applied'])
    expect(run.open().look().sent).toBe('restore drain to ready')
  })

  test('is ours if the next look saw it open, and ours was put back', () => {
    const run = forgotten(held().look()).set({ own: 'ready' }).look()
    expect([run.sent, run.state.sighted]).toEqual(['hold drain', null])
    run.answer().look().look()
    expect(ledger(run)).toEqual(['hold drain applied'])
    expect(run.open().look().sent).toBe('restore drain to ready')
  })

  test('is ours if an earlier look led to a put-back', () => {
    const run = held().look()
    forgotten(run, { askedAt: run.now + 10, at: run.now + 30 }).set({ own: 'ready' })
    expect(run.look({ after: 20 }).sent).toBe('hold drain')
    expect(run.state.sighted).not.toBe(null)
    run.answer().look()
    expect([ledger(run), run.state.sighted]).toEqual([['hold drain applied'], null])
  })

  test('is ours if it was put back in the same moment', () => {
    const run = forgotten(held().look()).set({ own: 'ready' })
    expect(run.look({ after: 0 }).sent).toBe('hold drain')
    expect(ledger(run.answer().look())).toEqual(['hold drain applied'])
  })

  test('is for a look to tell that is asked for after that was answered', () => {
    const run = held().look()
    forgotten(run, { at: run.now + 30 })
    expect(ledger(run.look({ after: 20 }))).toEqual(['hold drain applied'])
    expect(ledger(run.look({ after: 10 }))).toEqual([
      'hold drain applied',
      'restore ready unchanged',
    ])
  })

  test('may be a hold of ours whose answer is missing', () => {
    const run = forgotten(withLate(held().look(), 'hold', 'drain')).look()
    expect(ledger(run)).not.toContain('restore ready unchanged')
  })

  test('may be a change that another run of this process has sent since', () => {
    const run = forgotten(held().look())
    run.state = shareHolds(run.state)
    expect(ledger(run.look())).toEqual(['hold drain applied'])
  })

  test('is ours if it was seen no lower than now', () => {
    const run = forgotten(held({ hold: 'maint' }).look(), { own: 'drain' })
    expect(ledger(run.set({ own: 'drain' }).look())).toEqual(['hold maint applied'])
  })

  test('is taken back as far as it is found, lower than ours', () => {
    const run = forgotten(held({ hold: 'maint' }).look())
      .set({ own: 'drain' })
      .look()
    expect(ledger(run)).toEqual(['hold maint applied', 'restore drain unchanged'])
  })

  test('is raised by another client over what a state file brought back', () => {
    const run = held({ escalateAfter: 100 }).look().wait(100).look().answer().look()
    forgotten(run, { own: 'drain' }).look()
    expect(ledger(run)).toEqual(['hold drain applied', 'hold maint applied', 'hold drain applied'])
    expect(run.open().look().outcome).toBe('overruled')
  })

  test('is raised by another client over a drain that was not ours', () => {
    const run = forgotten(held({ hold: 'maint' }).look(), { own: 'drain' }).look()
    expect(ledger(run)).toEqual(['hold maint applied', 'restore drain unchanged'])
  })
})

describe('a state that another run saw of a released member', () => {
  test('leaves a process that it could not read as it was known', () => {
    const run = aborted().scope('w1', { state: 'unread', incarnation: 'w1.2' })
    run.set({ own: 'ready' }).look()
    expect(run.state.hold.incarnations).toEqual(SAME)
  })

  test('is noted as taken back, whatever process shows it', () => {
    const run = aborted()
    expect(see(run, { incarnations: OTHER })).toBe(true)
    expect(ledger(run)).toEqual(['hold drain applied', 'restore ready unchanged'])
    expect(run.state.hold.incarnations).toEqual(OTHER)
  })

  test('adds no second entry, and says in which process it is open', () => {
    const run = aborted()
    see(run)
    const noted = run.state.hold.changes
    expect(see(run, { incarnations: OTHER })).toBe(true)
    expect(run.state.hold.changes).toEqual(noted)
    expect(run.state.hold.incarnations).toEqual(OTHER)
  })

  test('names the process if it is open, even beside an unanswered undo', () => {
    const run = aborted()
    see(run)
    expect(see(withLate(run, 'restore', 'ready'), { incarnations: OTHER })).toBe(true)
  })

  test('is ours if a state file brought back what this one set first', () => {
    const run = held({ escalateAfter: 100 }).look().wait(100).look().answer()
    run.put({ type: 'end', outcome: 'aborted' })
    expect(see(run, { own: 'drain', incarnations: OTHER })).toBe(true)
    expect(ledger(run).at(-1)).toBe('hold drain applied')
    expect(run.set({ own: 'drain' }).open().look().sent).toBe('restore drain to ready')
  })

  test('is taken back if the same process shows what this one set first', () => {
    const run = held({ escalateAfter: 100 }).look().wait(100).look().answer()
    run.put({ type: 'end', outcome: 'aborted' })
    expect(see(run, { own: 'drain' })).toBe(true)
    expect(ledger(run).at(-1)).toBe('restore drain unchanged')
  })

  test('names the process if it is as this one left it', () => {
    const run = aborted()
    const noted = run.state.hold.changes
    expect(see(run, { own: 'drain', incarnations: OTHER })).toBe(true)
    expect(run.state.hold).toMatchObject({ changes: noted, incarnations: OTHER })
    expect(see(run, { own: 'drain', incarnations: OTHER })).toBe(false)
  })

  test('is ignored if it is not open', () => {
    const run = aborted()
    see(run)
    expect(see(run, { own: 'drain', incarnations: OTHER })).toBe(false)
    expect(see(aborted(), { own: 'drain' })).toBe(false)
  })

  test('has no process if none was known', () => {
    const run = aborted()
    run.state = { ...run.state, hold: { ...run.state.hold, incarnations: null } }
    expect(see(run, { own: 'drain' })).toBe(false)
    expect(see(run)).toBe(true)
    expect(run.state.hold.incarnations).toBe(null)
  })

  test('is ignored if this one has changed nothing', () => {
    const run = aborted()
    run.state = { ...run.state, hold: { ...run.state.hold, changes: [] } }
    expect(see(run)).toBe(false)
  })

  test('is noted while it is being opened', () => {
    const run = held().look().open()
    expect(see(run, { incarnations: OTHER })).toBe(true)
    expect(ledger(run)).toContain('restore ready unchanged')
  })
})

describe('a state that a drain itself saw of a released member', () => {
  test('is ignored by a drain that still looks after it', () => {
    const run = held().look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe('hold drain')
    run.refuse(failure('CONFLICT', true)).look({ after: 10 })
    expect(ledger(run)).toEqual(['hold drain applied'])
    const kept = idle().settle().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' })
    kept.look().refuse(failure('CONFLICT', true)).look({ after: 10 })
    expect(ledger(kept)).not.toContain('restore ready unchanged')
  })

  test('is noted as taken back, because nothing will put it back', () => {
    for (const incarnation of ['w1.1', 'w1.2']) {
      const run = aborted().set({ own: 'ready' }).scope('w1', { incarnation }).look()
      expect(ledger(run)).toEqual(['hold drain applied', 'restore ready unchanged'])
      expect(run.state.hold.incarnations).toEqual(new Map([['w1', incarnation]]))
      run.set({ own: 'drain' })
      expect(run.open().look().outcome).toBe('overruled')
    }
  })

  test('is ours if a state file brought back what it had set earlier', () => {
    const run = held({ escalateAfter: 100 }).look().wait(100).look().answer()
    expect(run.state.hold.confirmed).toBe('maint')
    run.put({ type: 'end', outcome: 'aborted' })
    run.set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(ledger(run).at(-1)).toBe('hold drain applied')
    expect(run.open().look().sent).toBe('restore drain to ready')
  })
})
