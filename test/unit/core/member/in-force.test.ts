import { describe, expect, test } from 'vitest'
import { held, idle, started } from './member-run.js'

describe('a process is in force', () => {
  test('if it took the wished state', () => {
    expect(idle({ scopes: { w1: { admin: 'drain' } } }).phase).toBe('idle')
  })

  test('by the own state, if it tells none itself', () => {
    expect(idle().proof.scopes.get('w1')?.last).not.toHaveProperty('inForce')
  })

  test('if it took a higher state', () => {
    expect(idle({ scopes: { w1: { admin: 'maint' } } }).phase).toBe('idle')
  })

  test('not if it is still ready', () => {
    const run = held({ scopes: { w1: { admin: 'ready' } } }).looks(5_000)
    expect(run.phase).toBe('draining')
  })

  test('not if its state is unknown', () => {
    const run = held({ scopes: { w1: { admin: 'unknown' } } }).looks(5_000)
    expect(run.phase).toBe('draining')
  })

  test('not if it says no, whatever state it took', () => {
    const run = held({ scopes: { w1: { admin: 'maint', inForce: false } } }).looks(5_000)
    expect(run.phase).toBe('draining')
  })

  test('not at drain if maint is wished', () => {
    const run = held({ hold: 'maint', scopes: { w1: { admin: 'drain' } } }).looks(5_000)
    expect(run.phase).toBe('draining')
  })

  test('if it admits no client, whatever its state', () => {
    const run = held({ scopes: { w1: { admin: 'ready', inForce: false, open: false } } })
    expect(run.looks(2_000).phase).toBe('idle')
  })

  test('not because it admits clients', () => {
    const run = held({ scopes: { w1: { inForce: false, open: true } } }).looks(5_000)
    expect(run.phase).toBe('draining')
  })
})

describe('in-force is said', () => {
  test('by the first look that shows it everywhere', () => {
    expect(held().look().said).toEqual(['in-force'])
  })

  test('once', () => {
    expect(held().looks(500).all('in-force')).toHaveLength(1)
  })

  test('not while one process has not taken it', () => {
    const run = held({ scopes: { w2: { inForce: false } } }).looks(500)
    expect(run.all('in-force')).toEqual([])
    expect(run.scope('w2', { inForce: true }).look().said).toEqual(['in-force'])
  })

  test('not while one process can not be read', () => {
    const run = held({ scopes: { w2: { state: 'unread' } } }).looks(500)
    expect(run.all('in-force')).toEqual([])
  })

  test('not while no process is listed', () => {
    const run = started().unlist('w1').hold().looks(500)
    expect(run.all('in-force')).toEqual([])
  })

  test('not of an absent member', () => {
    expect(held().vanish().looks(10).all('in-force')).toEqual([])
  })

  test('again after the hold was forgotten and put back', () => {
    const run = held().look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe('hold drain')
    run.answer().look()
    expect(run.all('in-force')).toHaveLength(2)
  })

  test('again after the state was unknown', () => {
    const run = held().look().set({ own: 'unknown' }).look().set({ own: 'drain' }).look()
    expect(run.all('in-force')).toHaveLength(2)
  })

  test('not again for a moment in which one process was not in force', () => {
    const run = held().look().scope('w1', { inForce: false }).look()
    expect(run.scope('w1', { inForce: true }).look().said).toEqual([])
  })

  test('not under goal watch', () => {
    const run = started({ goal: { kind: 'watch' }, own: 'drain' }).looks(500)
    expect(run.all('in-force')).toEqual([])
  })

  test('again for the seal', () => {
    const run = held({ seal: 'gentle' }).lookAt(100).lookAt(1_000)
    expect(run.sent).toBe('hold maint')
    run.answer().look()
    expect(run.said).toEqual(['in-force', 'phase', 'idle'])
  })
})
