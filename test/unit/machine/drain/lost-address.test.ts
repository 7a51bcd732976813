import { describe, expect, test } from 'vitest'
import { held, started } from '../member-run.js'

const NONE = { identity: '' }
const KNOWN = { identity: '10.0.0.1:80' }
const OTHER = { identity: '10.0.0.2:80' }

describe('a member that loses its address', () => {
  test('is the member that was found', () => {
    const run = held().set(NONE).look().look({ after: 20 }).looks(2_000)
    expect(run.outcome).toBe('idle')
    expect(run.state.found?.identity).toBe(KNOWN.identity)
  })

  test('before the first change is what was found', () => {
    const run = started().look({ asked: 0 }).set(NONE)
    expect(run.look().change.identity).toBe(KNOWN.identity)
    expect(run.state.found?.identity).toBe(KNOWN.identity)
  })

  test('and has another one after that is gone', () => {
    const run = held().set(NONE).look().set(OTHER).look().look({ after: 20 })
    expect(run.outcome).toBe('gone')
  })

  test('is closed again, and opened', () => {
    const run = held()
      .set({ ...NONE, own: 'ready' })
      .scope('w1', { incarnation: 'w1.2' })
      .look()
    expect(run.change).toMatchObject({ kind: 'hold', identity: KNOWN.identity })
    const undo = held().open().set(NONE).look()
    expect(undo.change).toMatchObject({ kind: 'restore', identity: KNOWN.identity })
  })
})

describe('a member without an address', () => {
  test('gets changes that do not say who it is', () => {
    expect(started({ present: NONE }).look().change).not.toHaveProperty('identity')
  })

  test('takes the first one that it has', () => {
    const run = held({ present: NONE }).set(OTHER).look()
    expect(run.state.found).toMatchObject({ ...OTHER, own: 'ready' })
    expect(run.set(KNOWN).look().look({ after: 20 }).outcome).toBe('gone')
  })

  test('before the first change takes the first one that it has', () => {
    const run = started({ present: NONE }).look({ asked: 0 }).set(OTHER)
    expect(run.look().change.identity).toBe(OTHER.identity)
  })
})
