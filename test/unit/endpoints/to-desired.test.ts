import { mapEndpoints, toDesired, type EndpointInput } from 'drainable/endpoints'
import { expect, test } from 'vitest'

const set: EndpointInput[] = [
  {
    addresses: ['10.0.0.1'],
    port: 80,
    conditions: { ready: false, serving: true, terminating: true },
  },
  { addresses: ['10.0.0.2'], port: 80, targetRef: { name: 'web-2' } },
  { addresses: ['10.0.0.3'], port: 80, conditions: { ready: false, serving: false } },
  { addresses: [] },
]

test('states, reasons and whether an endpoint still answers are passed on', () => {
  const desired = toDesired(mapEndpoints(set), { pool: 'web' })
  expect(desired).toEqual([
    {
      pool: 'web',
      address: '10.0.0.1',
      port: 80,
      state: 'drain',
      serving: true,
      reason: 'terminating but still serving; a ready one takes the new work',
    },
    { pool: 'web', address: '10.0.0.2', port: 80, state: 'serve', serving: true, reason: 'ready' },
    {
      pool: 'web',
      address: '10.0.0.3',
      port: 80,
      state: 'drain',
      serving: false,
      reason: 'not ready: it is starting or its probe fails',
    },
  ])
})

test('excluded is absent', () => {
  const desired = toDesired(mapEndpoints(set, { unready: 'exclude' }), { pool: 'web' })
  expect(desired.map(({ state }) => state)).toEqual(['drain', 'serve', 'absent'])
})

test('a function for names gets the endpoint', () => {
  const name = (d: { endpoint: EndpointInput }): string => d.endpoint.targetRef?.name ?? 'none'
  const desired = toDesired(mapEndpoints(set), { pool: 'web', name })
  expect(desired.map(({ member }) => member)).toEqual(['none', 'web-2', 'none'])
})

test('weights are passed on only if they differ from 1: they are shares', () => {
  const weights = (...given: number[]): unknown[] =>
    toDesired(mapEndpoints(given.map((weight, i) => ({ addresses: [`10.0.0.${i}`], weight }))), {
      pool: 'web',
    }).map(({ weight }) => weight)
  expect(weights(1, 1)).toEqual([undefined, undefined])
  expect(weights(1, 3)).toEqual([1, 3])
  expect(weights(1, 0)).toEqual([undefined, undefined])
})

test.each([
  [{}, 'toDesired(): pool is missing'],
  [{ pool: '' }, `pool is "", expected a pool's name`],
  [{ pool: 'web', names: 1 }, `unknown option 'names'`],
])('%j is refused', (options, message) => {
  expect(() => toDesired([], options as never)).toThrow(message)
})

const decision = { action: 'serve', address: '10.0.0.1', weight: 1 }

test.each<[unknown, object, string]>([
  [{}, {}, 'decisions is an object, expected a list of decisions'],
  [[null], {}, 'decisions[0] is null, expected a decision'],
  [[{}], {}, `decisions[0].action is missing, expected 'serve', 'drain' or 'exclude'`],
  [[{ ...decision, address: 1n }], {}, 'decisions[0].address is 1n, expected a text'],
  [[{ ...decision, port: 99_999 }], {}, 'decisions[0].port is 99999, expected a port from 1'],
  [[{ ...decision, weight: Number.NaN }], {}, 'decisions[0].weight is NaN, expected a finite'],
  [[decision], { name: 'ctl' }, 'name is "ctl", expected a function'],
  [[decision], { name: () => '' }, `name() of 10.0.0.1 is "", expected a member's name`],
  [[decision], { name: () => undefined }, 'name() of 10.0.0.1 is missing'],
])('%#: refused', (decisions, options, message) => {
  const all = { pool: 'web', ...options }
  expect(() => toDesired(decisions as never, all as never)).toThrow(message)
})
