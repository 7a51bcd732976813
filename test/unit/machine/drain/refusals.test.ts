import { describe, expect, test } from 'vitest'
import { failure, held, idle, started } from '../member-run.js'

const no = failure('FORBIDDEN')
const later = failure('CONFLICT', true)

describe('a hold that is refused for good', () => {
  test('ends the drain', () => {
    const run = started().look().refuse(no).look()
    expect(run.outcome).toBe('refused')
    expect(run.error).toBe(no)
  })

  test('ends it only after one more look', () => {
    const run = started().look().refuse(no)
    expect(run.outcome).toBe(null)
  })

  test('is not sent again', () => {
    expect(started().look().refuse(no).looks(5_000).sentSoFar).toEqual(['hold drain'])
  })

  test('is ignored if the next look shows the wished state', () => {
    const run = started().look().refuse(no).set({ own: 'drain' }).looks(2_000)
    expect(run.all('phase').map(({ to }) => to)).toEqual(['draining', 'idle'])
  })

  test('loses a held idle if it was a put-back', () => {
    const run = idle().settle().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    run.refuse(no).look()
    expect(run.effects).toContainEqual({
      type: 'lost',
      error: expect.objectContaining({ code: 'IDLE_LOST', cause: no }) as unknown,
    })
  })

  test('leaves a serving member active if it was a put-back', () => {
    const run = idle().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2', arrivals: 0 })
    run.look().refuse(no).look()
    expect(run.all('phase').map(({ to }) => to)).toEqual(['draining', 'idle', 'draining', 'active'])
  })

  test('leaves a member draining that still refuses work, if it was a put-back', () => {
    const run = idle({ maint: 'cuts', seal: 'always' }).set({ own: 'drain' })
    run.scope('w1', { incarnation: 'w1.2', arrivals: 0 }).looks(1_500).refuse(no).look()
    expect(run.phase).not.toBe('active')
  })

  test('leaves the held idle as it was if it was a put-back', () => {
    const run = idle().settle().set({ own: 'ready' })
    run.scope('w1', { incarnation: 'w1.2', arrivals: 0 }).look().refuse(later)
    expect(run.phase).toBe('idle')
    expect(run.state.proof.verdict).not.toBe(null)
    expect(run.look({ after: 250 }).sent).toBe('hold drain')
  })

  test('is told first', () => {
    expect(started().look().refuse(no).why[0]).toMatchObject({
      code: 'refused',
      hint: 'it is not tried again',
    })
  })
})

describe('a hold that is refused for now', () => {
  test('is a fault and no end', () => {
    const run = started().look().refuse(later)
    expect(run.said).toEqual(['fault'])
    expect(run.looks(1_000).outcome).toBe(null)
  })

  test('is sent again only by a look once its pause is over', () => {
    const run = started().look().refuse(later).look()
    expect(run.fail(failure('CONNECTION_LOST'), 300).sent).toBe(null)
  })

  test('is sent again after 250 ms, 500 ms, 1 s', () => {
    const run = started().look()
    for (const wait of [250, 500, 1_000]) {
      run.refuse(later)
      expect(run.look({ after: wait - 1 }).sent).toBe(null)
      expect(run.look({ after: 1 }).sent).toBe('hold drain')
    }
  })

  test('is sent again at most 5 s later', () => {
    const run = started().look()
    for (let i = 0; i < 14; i += 1) run.refuse(later).look({ after: 5_000 })
    run.refuse(later)
    expect(run.look({ after: 4_999 }).sent).toBe(null)
    expect(run.look({ after: 1 }).sent).toBe('hold drain')
  })

  test('is forgotten once the hold is confirmed', () => {
    const run = started().look().refuse(later).look({ after: 250 }).answer()
    expect(run.state.hold.refusal).toBe(null)
    expect(run.state.hold.refusals).toBe(0)
  })

  test('is told first, with its retry', () => {
    expect(started().look().refuse(later).why[0]).toMatchObject({
      code: 'refused',
      hint: 'it is tried again',
    })
  })

  test('makes earlier looks worthless', () => {
    const run = started().look().wait(100).refuse(later)
    expect(run.state.hold.confirmedAt).toBe(run.now)
  })

  test('is the error at the deadline', () => {
    const run = started({ timeout: 400 }).look().refuse(later).look({ after: 500 })
    expect(run.refuse(later).look().outcome).toBe('refused')
    expect(run.error).toBe(later)
  })
})

describe('a NOT_FOUND', () => {
  test('is tried again if the next look contradicts it', () => {
    const run = started().look().refuse(failure('NOT_FOUND')).look({ after: 250 })
    expect(run.sent).toBe('hold drain')
  })
})

describe('another change than the refused one', () => {
  test('is sent', () => {
    const run = held({ seal: 'gentle' }).lookAt(100).lookAt(1_000).refuse(no)
    run.look().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look({ after: 300 })
    expect(run.sent).toBe('hold drain')
  })
})

describe('an escalation that is refused', () => {
  test('leaves the drain as what is wished', () => {
    const run = held({ escalateAfter: 500, scopes: { w1: { active: 1 } } }).lookAt(500)
    expect(run.sent).toBe('hold maint')
    expect(run.refuse(no).state.hold.wish).toBe('drain')
    expect(run.looks(5_000).sentSoFar).toEqual(['hold drain', 'hold maint'])
    expect(run.outcome).toBe(null)
  })

  test('for now is retried', () => {
    const run = held({ escalateAfter: 500, scopes: { w1: { active: 1 } } }).lookAt(500)
    expect(run.refuse(later).look({ after: 249 }).sent).toBe(null)
    expect(run.look({ after: 1 }).sent).toBe('hold maint')
  })
})

describe('a refused removal', () => {
  test('for good ends the run', () => {
    const run = held({ until: 'removed' }).lookAt(100).lookAt(1_000).refuse(no).look()
    expect(run.outcome).toBe('refused')
    expect(run.error).toBe(no)
  })

  test('for now is retried', () => {
    const run = held({ until: 'removed' }).lookAt(100).lookAt(1_000).refuse(later)
    expect(run.look({ after: 250 }).sent).toBe('remove')
  })

  test('can not come late', () => {
    const run = held({ until: 'removed' }).lookAt(100).lookAt(1_000).refuse(later)
    expect(run.state.hold.late).toEqual([])
  })

  test('for now keeps the hold as what is wished', () => {
    const run = held({ until: 'removed' }).lookAt(100).lookAt(1_000).refuse(later)
    expect(run.state.hold.wish).toBe('drain')
    expect(run.phase).toBe('idle')
  })
})
