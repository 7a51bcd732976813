import { describe, expect, test } from 'vitest'
import { held } from '../member-run.js'

describe('the lost answer to a removal', () => {
  test('is not followed by a repeat while it may come late', () => {
    const run = held({ until: 'removed', lateBound: 2_000 }).lookAt(100).lookAt(1_000)
    expect(run.sent).toBe('remove')
    run.lose().looks(1_900)
    expect(run.sentSoFar).toEqual(['hold drain', 'remove'])
    expect(run.looks(500).sentSoFar).toEqual(['hold drain', 'remove', 'remove'])
  })

  test('is waited for as long as it may come, however often it was lost', () => {
    const run = held({ until: 'removed', lateBound: 50 }).lookAt(100).lookAt(1_000).lose().look()
    run.look({ after: 50 }).lose().look()
    expect(run.look({ after: 50 }).sent).toBe('remove')
  })

  test('is not a removal of ours if another member took its place', () => {
    const run = held({ until: 'removed' }).lookAt(100).lookAt(1_000).lose()
    run.set({ identity: 'x', own: 'ready' }).look().look({ after: 20 })
    expect(run.outcome).toBe('gone')
  })

  test('is a removal of ours if it was carried out', () => {
    const run = held({ until: 'removed' }).lookAt(100).lookAt(1_000).lose('done').look()
    run.look({ after: 20 })
    expect(run.outcome).toBe('removed')
    expect(run.all('removed')).toHaveLength(1)
    expect(run.state.hold.changes.at(-1)).toMatchObject({ kind: 'remove', state: 'applied' })
  })
})
