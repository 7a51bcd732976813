import fc from 'fast-check'
import { isDrainableError } from 'drainable'
import { mapEndpoints, mapNodes, markByNodes, mergeSlices, toDesired } from 'drainable/endpoints'
import { expect, test } from 'vitest'

const slice = {
  metadata: { name: 'web-1', namespace: 'shop', resourceVersion: '7', labels: {} },
  addressType: 'IPv4',
  ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
  endpoints: [
    {
      addresses: ['10.0.0.1'],
      conditions: { ready: true, serving: true, terminating: false },
      nodeName: 'n1',
      targetRef: { uid: 'u1', name: 'web-1' },
      hints: { forZones: [{ name: 'a' }] },
    },
  ],
}
const node = {
  metadata: { name: 'n1', labels: {} },
  spec: { taints: [{ key: 'a' }], unschedulable: false },
  status: {
    addresses: [{ type: 'InternalIP', address: '10.1.0.1' }],
    conditions: [{ type: 'Ready', status: 'True' }],
  },
}

/** Every place in a value, as the keys that lead there. */
function placesIn(value: unknown): string[][] {
  if (typeof value !== 'object' || value === null) return [[]]
  const below = Object.entries(value).flatMap(([key, one]) =>
    placesIn(one).map((path) => [key, ...path]),
  )
  return [[], ...below]
}

function withAt(value: unknown, [key, ...rest]: readonly string[], odd: unknown): unknown {
  if (key === undefined) return odd
  const copy = (
    Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }
  ) as never
  return Object.assign(copy, { [key]: withAt(value?.[key as never], rest, odd) })
}

test.each<[string, object, (given: never) => unknown]>([
  ['a slice', slice, (given) => toDesired(mapEndpoints(mergeSlices([given])), { pool: 'web' })],
  ['a slice twice', slice, (given) => mergeSlices([given, slice])],
  ['an endpoint', mergeSlices([slice])[0] ?? {}, (given) => mapEndpoints([given])],
  [
    'a decision',
    mapEndpoints(mergeSlices([slice]))[0] ?? {},
    (given) => toDesired([given], { pool: 'web' }),
  ],
  ['a Node', node, (given) => mapEndpoints(mapNodes([given], { ports: [80] }))],
  ['a Node beside endpoints', node, (given) => markByNodes(mergeSlices([slice]), [given])],
])('%s with any one place wrong throws only INVALID_OPTIONS', (_, whole, call) => {
  const place = fc.constantFrom(...placesIn(whole))
  const odd = fc.anything({ withBigInt: true, withNullPrototype: true, withSparseArray: true })
  fc.assert(
    fc.property(place, odd, (path, value) => {
      try {
        call(withAt(whole, path, value) as never)
      } catch (error) {
        expect(isDrainableError(error, 'INVALID_OPTIONS')).toBe(true)
      }
    }),
    { numRuns: 2_000 },
  )
})
