import { describe, expect, test } from 'vitest'
import { edsSteps } from '../../../../src/adapters/envoy/codec/json.js'
import { parseSets, setSteps } from '../../../../src/adapters/envoy/codec/sets.js'
import { whole, type Steps } from '../../../../src/adapters/envoy/codec/steps.js'

const setOf = (size: number, odd = -1) => ({
  cluster_name: 'web',
  endpoints: [
    {
      lb_endpoints: Array.from({ length: size }, (_, i) => ({
        endpoint: {
          address: { socket_address: { address: `10.1.${i >> 8}.${i & 255}`, port_value: 80 } },
        },
        ...(i === odd ? { load_balancing_weight: 0 } : {}),
      })),
    },
  ],
})
const documentOf = (size: number, odd?: number) =>
  JSON.stringify({ version_info: '1', resources: [setOf(size, odd)] })

function run<T>(steps: Steps<T>): { pauses: number; value: T } {
  for (let pauses = 0; ; pauses++) {
    const { done, value } = steps.next()
    if (done === true) return { pauses, value }
  }
}

describe('a set read in steps', () => {
  test.each([
    [10, 0],
    [10_000, 21],
  ])('of %i endpoints pauses %i times, and equals one read at once', (size, expected) => {
    const text = documentOf(size)
    const { pauses, value } = run(edsSteps(text))
    expect(pauses).toBe(expected)
    const [set] = value.assignments
    expect(set?.version).toBe(whole(edsSteps(text)).assignments[0]?.version)
    expect(set?.endpoints).toHaveLength(size)
  })

  test('pauses when it is given as a value, too', () => {
    const { pauses, value } = run(setSteps(setOf(10_000), 'load()', 'MALFORMED_REPLY'))
    expect(pauses).toBe(20)
    expect(value.map(({ version }) => version)).toEqual(
      parseSets(setOf(10_000), 'load()', 'MALFORMED_REPLY').map(({ version }) => version),
    )
  })

  test('with a fault in a later step tells its path', () => {
    const fault = expect.objectContaining({
      path: 'resources[0].endpoints[0].lb_endpoints[7000].load_balancing_weight',
    }) as unknown
    expect(() => run(edsSteps(documentOf(10_000, 7_000)))).toThrow(fault)
  })
})
