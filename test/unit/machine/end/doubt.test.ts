import { describe, expect, test } from 'vitest'
import { failure, held, idle, started } from '../member-run.js'

describe('an idle in doubt, because other balancers were idle later', () => {
  test('is no outcome while nothing can be read, until a look shows it', () => {
    const run = idle().fail().put({ type: 'doubt' })
    expect([run.phase, run.outcome]).toEqual(['idle', null])
    expect(run.look().outcome).toBe('idle')
    expect(run.all('idle')).toHaveLength(1)
  })

  test('is the outcome by what was read last', () => {
    expect(idle().put({ type: 'doubt' }).outcome).toBe('idle')
  })

  test('is lost if the next look shows work', () => {
    const run = idle().fail().put({ type: 'doubt' }).scope('w1', { active: 1 }).look()
    expect([run.phase, run.outcome]).toEqual(['draining', null])
  })

  test('stands once the run has its outcome', () => {
    expect(idle().settle().fail().put({ type: 'doubt' }).outcome).toBe('idle')
  })

  test('is no outcome either where it followed a cut', () => {
    const cut = held({ timeout: 1_000, onTimeout: 'terminate', scopes: { w1: { active: 2 } } })
    cut.look({ after: 2_000 }).answer('applied', { terminated: 2 }).scope('w1', { active: 0 })
    cut.looks(500).fail()
    expect([cut.phase, cut.outcome]).toEqual(['idle', 'terminated'])
    expect(cut.put({ type: 'doubt' }).outcome).toBe('unreachable')
  })

  test('that does not rest on idle is not reopened', () => {
    const cut = held({ timeout: 1_000, onTimeout: 'terminate', scopes: { w1: { active: 2 } } })
    cut.look({ after: 2_000 }).answer('applied', { terminated: 2 })
    cut.scope('w1', { active: 0, inForce: false }).looks(8_000).fail()
    expect([cut.phase, cut.outcome]).toEqual(['draining', 'terminated'])
    expect(cut.put({ type: 'doubt' }).outcome).toBe('terminated')
  })

  test('does not affect another end', () => {
    const run = held().fail().put({ type: 'end', outcome: 'aborted' })
    expect(run.put({ type: 'doubt' }).outcome).toBe('aborted')
    expect(held().put({ type: 'doubt' }).outcome).toBe(null)
  })
})

test('why() tells an unsent change from a refused one', () => {
  const whyOf = (code: 'TICKET_INVALID' | 'REJECTED') =>
    started().look().refuse(failure(code, true)).why[0]
  expect(whyOf('TICKET_INVALID')).toMatchObject({
    text: expect.stringContaining("'hold' was not sent") as string,
    hint: 'it is not tried again',
  })
  expect(whyOf('REJECTED')).toMatchObject({
    text: expect.stringContaining("'hold' was refused by the balancer") as string,
    hint: 'it is tried again',
  })
})
