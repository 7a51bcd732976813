import { describe, expect, test } from 'vitest'
import { held, started } from '../member-run.js'

describe('until removed', () => {
  test('removes an idle member', () => {
    const run = held({ until: 'removed' }).lookAt(100).lookAt(1_000)
    expect(run.said).toEqual(['phase', 'idle'])
    expect(run.sent).toBe('remove')
    expect(run.change.identity).toBe('10.0.0.1:80')
    expect(run.outcome).toBe(null)
  })

  test('ends as removed', () => {
    const run = held({ until: 'removed' }).lookAt(100).lookAt(1_000).answer()
    expect(run.said).toEqual(['phase', 'removed'])
    expect(run.phase).toBe('removed')
    expect(run.outcome).toBe('removed')
  })

  test('does not remove a busy member', () => {
    const run = held({ until: 'removed', scopes: { w1: { active: 1 } } }).looks(10_000)
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test('removes nothing after the seal was lost', () => {
    const run = held({ until: 'removed', seal: 'gentle' }).lookAt(100).lookAt(1_000).answer()
    expect(run.scope('w1', { active: 1 }).look().sent).toBe(null)
  })

  test('removes after the seal', () => {
    const run = held({ until: 'removed', seal: 'gentle' }).lookAt(100).lookAt(1_000).answer()
    expect(run.look().sent).toBe('remove')
  })

  test('waits until no hold of ours can come late', () => {
    const run = started({ until: 'removed', lateBound: 3_000 }).look().lose().look().answer().mark()
    run.looks(2_900)
    expect(run.phase).toBe('idle')
    expect(run.sentSoFar).not.toContain('remove')
    expect(run.looks(200).sentSoFar).toContain('remove')
  })

  test('ends as terminated if something was cut before', () => {
    const run = held({ until: 'removed', onTimeout: 'terminate', timeout: 500 })
    run.scope('w1', { active: 1 }).look({ after: 600 }).answer('applied', { terminated: 1 })
    run.scope('w1', { active: 0 }).looks(1_500).answer()
    expect(run.outcome).toBe('terminated')
    expect(run.phase).toBe('removed')
  })

  test('does not remove after the deadline', () => {
    const run = held({ until: 'removed', timeout: 500 }).looks(5_000)
    expect(run.outcome).toBe('timeout')
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test('is gone if another client removed the member', () => {
    const run = held({ until: 'removed' }).scope('w1', { state: 'ended' }).vanish()
    expect(run.look().look({ after: 20 }).outcome).toBe('gone')
  })

  test('takes no further look', () => {
    const run = held({ until: 'removed' }).lookAt(100).lookAt(1_000).answer()
    expect(run.vanish().looks(1_000).all('removed')).toHaveLength(1)
    expect(run.heard.at(-1)?.type).toBe('removed')
  })
})
