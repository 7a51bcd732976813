import { expect, test } from 'vitest'
import { START, held } from '../member-run.js'

const busy = { active: 2 }

test('work of a process that has ended for certain is lost without a note', () => {
  const run = held({ scopes: { w2: busy } }).look()
  run.scope('w2', { state: 'ended' }).look()
  expect(run.state.proof.lost).toStrictEqual([
    { scope: 'w2', active: 2, at: expect.any(String) as string },
  ])
})

test('work of a process that only counts as ended is lost with its note', () => {
  const run = held({ scopes: { w2: busy } }).look()
  run.scope('w2', { state: 'ended', note: 'given up' }).look()
  expect(run.state.proof.lost).toMatchObject([{ scope: 'w2', active: 2, note: 'given up' }])
  run.looks(2_000)
  const texts = run.why.map(({ text }) => text)
  expect(texts).toContain(
    'w2 was last seen with 2 in flight, and nothing tells what became of that work: given up',
  )
})

test('the reason for lost work says that it was cut, or finished unseen', () => {
  const run = held({ scopes: { w2: busy } }).look()
  run.scope('w2', { state: 'ended' }).looks(2_000)
  const texts = run.why.map(({ text }) => text)
  expect(texts).toContain('w2 ended with 2 in flight: that work was cut, or finished unseen')
})

test.each([
  [undefined, null],
  [5_000, START + 5_000],
])('a load event of a drain with the timeout %s has the deadline', (timeout, deadline) => {
  const run = held(timeout === undefined ? {} : { timeout }).look()
  const loads = run.heard.filter((event) => event.type === 'load')
  expect(loads.length).toBeGreaterThan(0)
  for (const load of loads) expect(load.deadline).toBe(deadline === null ? null : run.iso(deadline))
})
