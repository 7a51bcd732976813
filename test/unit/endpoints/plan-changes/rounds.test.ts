import fc from 'fast-check'
import { formatPlan, mapEndpoints, toDesired, type Plan } from 'drainable/endpoints'
import type { PresentReading } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { a, gentle, plan, reading, snapshotOf, wish } from '../plan-support.js'

describe('level-triggered: carrying out a plan leaves nothing to do', () => {
  test('for any set of endpoints in at most three rounds', () => {
    const tri = fc.constantFrom(true, false, null)
    const endpoint = fc.record({
      addresses: fc.constantFrom(['10.0.0.1'], ['10.0.0.2'], ['10.0.0.3'], ['10.0.0.4']),
      port: fc.constant(80),
      conditions: fc.record({ ready: tri, serving: tri, terminating: tri }),
    })
    const sets = fc.uniqueArray(endpoint, { selector: (e) => e.addresses[0], minLength: 1 })
    fc.assert(
      fc.property(sets, fc.subarray(['10.0.0.1', '10.0.0.5', '10.0.0.6']), (endpoints, there) => {
        let readings = there.map((address) => reading(`${address}:80`, address, gentle))
        const desired = toDesired(mapEndpoints(endpoints), { pool: 'web' })
        const options = { keepReady: 0, idle: () => true }
        for (let round = 0; round < 3; round++) {
          readings = carryOut(readings, plan(desired, snapshotOf(...readings), options).changes)
        }
        expect(plan(desired, snapshotOf(...readings), options).changes).toEqual([])
        const serving = readings.filter(({ serves }) => serves).map(({ address }) => address)
        const wanted = desired
          .filter(({ state }) => state === 'serve')
          .map(({ address }) => address)
        expect(serving.toSorted()).toEqual(wanted.toSorted())
      }),
    )
  })
})

function carryOut(readings: PresentReading[], changes: Plan['changes']): PresentReading[] {
  const after = new Map(readings.map((one) => [one.ref.member, one]))
  for (const change of changes) {
    const { member } = change.ref
    const found = after.get(member)
    if (change.kind === 'add') after.set(member, reading(member, change.address, gentle))
    else if (change.kind === 'remove') after.delete(member)
    else if (found && change.kind === 'hold')
      after.set(member, { ...found, own: change.to, serves: false })
    else if (found && change.kind === 'restore') {
      expect(found.own).toBe(change.expect)
      after.set(member, { ...found, own: change.to, serves: change.to === 'ready' })
    }
  }
  return [...after.values()]
}

describe('formatPlan', () => {
  test('has one line per change and per member left alone', () => {
    const desired = [
      wish('10.0.0.1', 'drain'),
      wish('10.0.0.2', 'serve'),
      wish('10.0.0.3', 'serve', { weight: 2 }),
      wish('10.0.0.4', 'serve', { member: 'four' }),
    ]
    const back = reading('b', '10.0.0.2', { own: 'maint' })
    const other = reading('c', '10.0.0.8')
    const text = formatPlan(plan(desired, snapshotOf(a, back, other), { keepReady: 0 }))
    expect(text.split('\n').map((line) => line.replace(/; drain, because .*/, ''))).toEqual([
      '5 changes, 0 left alone',
      '  maint to ready  web/b                     wants serve',
      '  hold in drain   web/c                     no endpoint has its address 10.0.0.8:80 any more',
      '  hold in drain   web/a                     wants drain',
      '  add             web/10.0.0.3:80 weight 2  wants serve',
      '  add             web/four at 10.0.0.4:80   wants serve',
    ])
  })

  test('lets no control characters from outside reach the terminal', () => {
    const evil = reading('e\u001b[31mvil\n', '10.0.0.7')
    const text = formatPlan(
      plan([wish('10.0.0.2', 'serve', { reason: 'x\u0007y' })], snapshotOf(evil)),
    )
    expect(text).toContain('web/e [31mvil')
    expect(text).not.toMatch(/[^\P{Cc}\n]/u)
    expect(text).toContain('x y')
  })
})
