import { describe, expect, test } from 'vitest'
import { held, idle, started, type RunOptions } from './member-run.js'

const UNCOUNTED: RunOptions = { counts: 'none', scopes: { w1: { released: true } } }

describe('a product without counts that takes back its word', () => {
  test('while its seal has no answer is not idle', () => {
    const run = held({ ...UNCOUNTED, seal: 'always', maint: 'cuts' }).look()
    expect(run.sent).toBe('hold maint')
    run.answer().scope('w1', { released: false }).look()
    expect(run.phase).toBe('draining')
    expect(run.scope('w1', { released: true }).look().phase).toBe('idle')
  })

  test('is not sealed over that if maint cuts', () => {
    const run = held({ ...UNCOUNTED, seal: 'always', maint: 'cuts', waitsForTicket: true }).look()
    expect(run.sent).toBe('hold maint')
    run.scope('w1', { released: false }).look().written()
    expect(run.ledger.pending).toBe(null)
    expect(run.claim.wish).toBe('drain')
  })

  test('loses its idle', () => {
    const run = idle(UNCOUNTED).scope('w1', { released: false }).look()
    expect(run.said).toContain('idle-lost')
    expect(run.phase).toBe('draining')
  })

  test('loses the idle that is held', () => {
    const run = idle(UNCOUNTED).settle().scope('w1', { released: false }).look()
    expect(run.effects).toMatchObject([{ type: 'lost' }, {}, {}, {}])
    expect(run.phase).toBe('draining')
  })

  test('loses the idle of a watch', () => {
    const run = started({ ...UNCOUNTED, goal: { kind: 'watch' }, own: 'drain' }).looks(500)
    expect(run.phase).toBe('idle')
    expect(run.scope('w1', { released: false }).look().phase).toBe('draining')
  })
})

test('a product that counts work holds idle without its word', () => {
  const run = idle({ scopes: { w1: { released: true } } }).scope('w1', { released: false })
  expect(run.look().phase).toBe('idle')
  expect(run.settle().look().phase).toBe('idle')
})
