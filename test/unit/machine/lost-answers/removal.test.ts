import { describe, expect, test } from 'vitest'
import { held } from '../member-run.js'

describe('the lost answer to a removal', () => {
  test('does not make it sent twice while it may be late', () => {
    const run = held({ until: 'removed', lateBound: 2_000 }).lookAt(100).lookAt(1_000)
    expect(run.sent).toBe('remove')
    run.lose().looks(1_900)
    expect(run.sentSoFar).toEqual(['hold drain', 'remove'])
    expect(run.looks(500).sentSoFar).toEqual(['hold drain', 'remove', 'remove'])
  })

  test('is waited for as long as it may be late, however often it was lost', () => {
    const run = held({ until: 'removed', lateBound: 50 }).lookAt(100).lookAt(1_000).lose().look()
    run.look({ after: 50 }).lose().look()
    expect(run.look({ after: 50 }).sent).toBe('remove')
  })

  test('with another member in its place is not ours', () => {
    const run = held({ until: 'removed' }).lookAt(100).lookAt(1_000).lose()
    run.set({ identity: 'x', own: 'ready' }).look().look({ after: 20 })
    expect(run.outcome).toBe('gone')
  })

  test('that was carried out is ours', () => {
    const run = held({ until: 'removed' }).lookAt(100).lookAt(1_000).lose('done').look()
    run.look({ after: 20 })
    expect(run.outcome).toBe('removed')
    expect(run.all('removed')).toHaveLength(1)
    expect(run.state.hold.changes.at(-1)).toMatchObject({ kind: 'remove', state: 'applied' })
  })
})
