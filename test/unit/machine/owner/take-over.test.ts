import type { FoundMember, OwnChange } from 'drainable/machine'
import { describe, expect, test } from 'vitest'
import { held, started, type FreeInput, type MemberRun } from '../member-run.js'

interface HeldByOther {
  readonly own?: FoundMember['own']
  readonly identity?: string
  readonly changes?: readonly OwnChange[]
  readonly incarnations?: ReadonlyMap<string, string>
}

/** What a drain that an undo ends holds: maint, over the drain that it had found. */
function heldByOther(options: HeldByOther = {}): FreeInput {
  const { own = 'drain', identity = '10.0.0.1:80', changes, incarnations } = options
  const found = { identity, own, serves: true, native: null }
  const maint: OwnChange = { kind: 'hold', to: 'maint', state: 'applied', at: 5_000 }
  return {
    type: 'inherit',
    late: [],
    held: { found, changes: changes ?? [maint], ...(incarnations && { incarnations }) },
  }
}

const found = (run: MemberRun): string | undefined => run.state.found?.own

describe('an undo that ends a drain of the same process', () => {
  test('opens its hold, back to before both', () => {
    const run = held().put(heldByOther()).set({ own: 'maint' }).look().open().look()
    expect(run.sent).toBe('restore maint to ready')
    expect(run.answer().look().outcome).toBe('restored')
  })

  test('goes back to what the other found if that was there first', () => {
    expect(found(held({ own: 'drain', hold: 'maint' }).put(heldByOther({ own: 'ready' })))).toBe(
      'ready',
    )
    expect(found(held().put(heldByOther({ own: 'maint' })))).toBe('ready')
    expect(found(held().put(heldByOther({ own: 'unknown' })))).toBe('ready')
  })

  test('has no state to go back to if neither is known as ready', () => {
    const run = held().put({ type: 'inherit', late: [] })
    run.state = { ...run.state, found: { ...run.state.found!, own: 'unknown' } }
    expect(found(run.put(heldByOther()))).toBe('unknown')
    expect(found(run.put(heldByOther({ own: 'ready', changes: [opened(6_000)] })))).toBe('ready')
  })

  test('takes over nothing of another member of that name', () => {
    const run = held().put(heldByOther({ identity: '10.0.0.9:80' }))
    expect(run.state.hold.changes).toMatchObject([{ to: 'drain' }])
  })

  test('takes over the same once, in the order in which it was done', () => {
    const run = held().put(heldByOther()).put(heldByOther())
    expect(run.state.hold.changes.map(({ to }) => to)).toEqual(['drain', 'maint'])
    run.put(heldByOther({ changes: [opened(500)] }))
    expect(run.state.hold.changes.map(({ at }) => at)[0]).toBe(500)
  })

  test('takes over nothing before it has found the member', () => {
    const run = started().put(heldByOther())
    expect(run.state.hold.changes).toEqual([])
    expect(run.state.found).toBe(null)
  })

  test('takes over every entry that differs from its own', () => {
    const maint: OwnChange = { kind: 'hold', to: 'maint', state: 'applied', at: 5_000 }
    const others: readonly OwnChange[] = [
      { ...maint, kind: 'restore' },
      { ...maint, to: 'drain' },
      { ...maint, state: 'intended' },
      { ...maint, at: 5_001 },
    ]
    for (const other of others) {
      const run = held()
        .put(heldByOther())
        .put(heldByOther({ changes: [other] }))
      expect(run.state.hold.changes).toHaveLength(3)
      expect(run.state.hold.changes).toContain(other)
    }
  })

  test('goes back no further for what it knows already', () => {
    const run = held({ own: 'drain', hold: 'maint' }).put(heldByOther())
    expect(found(run.put(heldByOther({ own: 'ready' })))).toBe('drain')
  })

  test('goes back to the more open of two closed states', () => {
    expect(found(held({ own: 'maint', hold: 'maint' }).put(heldByOther({ own: 'drain' })))).toBe(
      'drain',
    )
    const unknown = held({ own: 'maint', hold: 'maint' }).put(heldByOther({ own: 'unknown' }))
    expect(found(unknown)).toBe('maint')
  })

  test('keeps the found state if both found the same', () => {
    const run = held()
    const mine = run.state.found
    expect(run.put(heldByOther({ own: 'ready' })).state.found).toBe(mine)
  })

  test('knows the processes of the later of two changes that it takes over', () => {
    const theirs = new Map([['w1', 'w1.7']])
    const run = held().put(
      heldByOther({ changes: [opened(500), opened(6_000)], incarnations: theirs }),
    )
    expect(run.state.hold.incarnations).toBe(theirs)
    const bare = held().put(heldByOther())
    expect(bare.state.hold.incarnations).toBe(null)
  })

  test('knows the processes that took the last change', () => {
    const theirs = new Map([['w1', 'w1.7']])
    const run = held().put(heldByOther({ incarnations: theirs }))
    expect(run.state.hold.incarnations).toBe(theirs)
    const mine = held()
    const before = mine.state.hold.incarnations
    mine.put(heldByOther({ changes: [opened(500)], incarnations: theirs }))
    expect(mine.state.hold.incarnations).toBe(before)
  })
})

function opened(at: number): OwnChange {
  return { kind: 'hold', to: 'maint', state: 'applied', at }
}

test('a state set again above a step of an undo is not ours', () => {
  const run = held({ hold: 'maint', present: { health: 'unknown' } }).look()
  run.scope('w1', { incarnation: 'w1.2' }).open().look()
  expect(run.sent).toBe('restore maint to drain')
  expect(run.answer().state.hold.incarnations).toEqual(new Map([['w1', 'w1.2']]))
  run.look().set({ own: 'maint' }).look()
  expect(run.outcome).toBe('overruled')
})
