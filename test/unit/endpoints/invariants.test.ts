import fc from 'fast-check'
import {
  mapEndpoints,
  normaliseConditions,
  tierOf,
  type Action,
  type EndpointInput,
} from 'drainable/endpoints'
import { describe, expect, test } from 'vitest'
import { conditionsWritten, type PodState } from './pod-model.js'
import {
  COMBINATIONS,
  conditionsOf,
  endpointsOf,
  fixture,
  STRATEGY_NAMES,
  type PodVector,
} from './vectors.js'

const tri = fc.constantFrom(true, false, null, undefined)
const anyEndpoint: fc.Arbitrary<EndpointInput> = fc.record(
  {
    addresses: fc.array(fc.constantFrom('10.0.0.1', '10.0.0.2', '2001:db8::1'), {
      minLength: 1,
      maxLength: 2,
    }),
    conditions: fc.option(
      fc.record({ ready: tri, serving: tri, terminating: tri }, { requiredKeys: [] }),
    ),
    weight: fc.constantFrom(0, 1, 5),
    intent: fc.constantFrom('none', 'soft', 'hard'),
    nodeName: fc.constantFrom('n1', 'n2', null),
    hints: fc.option(
      fc.record({ forZones: fc.subarray(['a', 'b']), forNodes: fc.subarray(['n1', 'n2']) }),
    ),
  },
  { requiredKeys: ['addresses'] },
)
const anySet = fc.array(anyEndpoint, { maxLength: 8 })
const anyStrategy = fc.constantFrom(...STRATEGY_NAMES)
const RANK: Record<Action, number> = { exclude: 0, drain: 1, serve: 2 }

/** Tiers 1 to 5; 9 for what its operator drained, which never is a candidate. */
function fullTier(endpoint: EndpointInput): number {
  const tier = tierOf(normaliseConditions(endpoint.conditions))
  if (tier <= 3 && (endpoint.intent === 'hard' || endpoint.weight === 0)) return 9
  return tier === 1 && endpoint.intent === 'soft' ? 2 : tier
}

const actions = (set: readonly EndpointInput[]): Action[] =>
  mapEndpoints(set).map(({ action }) => action)

/** Every set of up to three of the 27 combinations: 20,439 sets. */
function* smallSets(): Generator<string[]> {
  for (const a of COMBINATIONS) {
    yield [a]
    for (const b of COMBINATIONS) {
      yield [a, b]
      for (const c of COMBINATIONS) yield [a, b, c]
    }
  }
}

describe('1. total and pure, under every strategy', () => {
  test('any mix gives one decision each, twice the same, and no changed input', () => {
    fc.assert(
      fc.property(anySet, anyStrategy, fc.boolean(), (set, strategy, topology) => {
        const before = structuredClone(set)
        const context = { topology, nodeName: 'n1', zone: 'a' }
        const decisions = mapEndpoints(set, { strategy, context })
        expect(decisions).toHaveLength(set.length)
        expect(decisions.map(({ address }) => address)).toEqual(set.map((one) => one.addresses[0]))
        expect(mapEndpoints(set, { strategy, context })).toEqual(decisions)
        expect(set).toEqual(before)
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('2 to 5, by brute force over all 27 combinations in sets of up to three', () => {
  test('no blackout, no needless use, and locality', () => {
    for (const letters of smallSets()) {
      const set = endpointsOf(...letters)
      const tiers = set.map(fullTier)
      const best = Math.min(...tiers)
      const found = actions(set)
      const expected = tiers.map((tier) => (tier <= 3 && tier === best ? 'serve' : 'drain'))
      expect(found, letters.join(' ')).toEqual(expected)
      expect(found.includes('serve'), letters.join(' ')).toBe(best <= 3)
    }
  })

  test('a terminating endpoint serves only where no ready one is left', () => {
    fc.assert(
      fc.property(anySet, (set) => {
        const usesLeaving = mapEndpoints(set).some(
          ({ action, endpoint }) => action === 'serve' && endpoint.conditions?.terminating === true,
        )
        if (usesLeaving) expect(set.map(fullTier)).not.toContain(1)
      }),
    )
  })

  test('4. a permutation of the input permutes the output', () => {
    const permuted = anySet.chain((set) =>
      fc.tuple(
        fc.constant(set),
        fc.shuffledSubarray(
          set.map((_, i) => i),
          { minLength: set.length },
        ),
      ),
    )
    fc.assert(
      fc.property(permuted, anyStrategy, ([set, order], strategy) => {
        const straight = mapEndpoints(set, { strategy })
        const shuffled = mapEndpoints(
          order.map((i) => set[i]!),
          { strategy },
        )
        expect(shuffled).toEqual(order.map((i) => straight[i]!))
      }),
    )
  })
})

describe('6 and 7. monotone and antitone within what the controller writes', () => {
  const pod = fc.record({ podReady: fc.boolean(), deleting: fc.boolean() })
  const service = fc.tuple(fc.array(pod, { minLength: 1, maxLength: 5 }), fc.boolean(), fc.nat())
  const input = (state: PodState, i: number): EndpointInput => ({
    addresses: [`10.0.0.${i}`],
    conditions: conditionsWritten(state),
  })

  test('a better pod never loses, and the others never gain by it', () => {
    fc.assert(
      fc.property(service, ([pods, publish, pick]) => {
        const chosen = pick % pods.length
        const states = pods.map((one) => ({ ...one, publish }))
        const before = actions(states.map(input))
        for (const better of [{ podReady: true }, { deleting: false }]) {
          const after = actions(
            states.map((one, i) => input(i === chosen ? { ...one, ...better } : one, i)),
          )
          for (const [i, action] of after.entries()) {
            const change = RANK[action] - RANK[before[i]!]
            if (i === chosen) expect(change).toBeGreaterThanOrEqual(0)
            else expect(change).toBeLessThanOrEqual(0)
          }
        }
      }),
      { numRuns: 2_000 },
    )
  })

  test('the model writes what the controller wrote', () => {
    for (const { name, pod: given, service: of, expected } of fixture(
      'pod-conditions',
    ) as PodVector[]) {
      const state = {
        podReady: given.ready,
        deleting: given.deleting ?? false,
        publish: of.publishNotReadyAddresses,
      }
      expect(conditionsWritten(state), name).toEqual(expected)
    }
  })

  test('serving, not ready and not terminating is never written', () => {
    for (const bits of [0, 1, 2, 3, 4, 5, 6, 7]) {
      const state = { podReady: (bits & 1) > 0, deleting: (bits & 2) > 0, publish: (bits & 4) > 0 }
      expect(conditionsWritten(state)).not.toEqual({
        ready: false,
        serving: true,
        terminating: false,
      })
    }
  })
})

test('8. adding one never improves another, removing one never worsens it', () => {
  fc.assert(
    fc.property(anySet, anyEndpoint, (set, added) => {
      const before = actions(set)
      const after = actions([...set, added]).slice(0, set.length)
      for (const [i, action] of after.entries()) {
        expect(RANK[action]).toBeLessThanOrEqual(RANK[before[i]!])
      }
    }),
  )
})

test('9. null, undefined and missing are the same: ready and serving', () => {
  for (const letters of COMBINATIONS) {
    const plain = conditionsOf(letters)
    const missing = Object.fromEntries(
      Object.entries(plain).filter(([, value]) => value !== undefined),
    )
    const forms = [plain, conditionsOf(letters, null), missing]
    const found = forms.map((conditions) =>
      mapEndpoints([{ addresses: ['10.0.0.1'], conditions }, ...endpointsOf('FTT')]),
    )
    for (const decisions of found) {
      expect(decisions.map(({ action }) => action)).toEqual(found[0]!.map(({ action }) => action))
    }
  }
  const ready = { ready: true, serving: true, terminating: false }
  for (const conditions of [null, undefined, {}, { ready: true }, ready]) {
    expect(normaliseConditions(conditions)).toEqual(ready)
  }
})

test('10. weight above 0, HEALTHY and add all mean serve', () => {
  fc.assert(
    fc.property(anySet, (set) => {
      for (const { action, weight, health, ifAbsent } of mapEndpoints(set)) {
        const serves = action === 'serve'
        expect([weight > 0, health === 'HEALTHY', ifAbsent === 'add']).toEqual([
          serves,
          serves,
          serves,
        ])
      }
    }),
  )
})

test('11. without terminating ones it serves what kube-proxy and Cilium do', () => {
  const plain = anySet.map((set) =>
    set
      .map(({ addresses, conditions = null }) => ({ addresses, conditions }))
      .filter(({ conditions }) => {
        const { ready, terminating } = normaliseConditions(conditions)
        return !(ready && terminating)
      }),
  )
  fc.assert(
    fc.property(plain, (set) => {
      const serving = (
        strategy: 'serve-terminating-fallback' | 'kube-proxy' | 'cilium-l7',
      ): boolean[] => mapEndpoints(set, { strategy }).map(({ action }) => action === 'serve')
      const own = serving('serve-terminating-fallback')
      expect(own).toEqual(serving('kube-proxy'))
      expect(own).toEqual(serving('cilium-l7'))
    }),
  )
})

test('12. hard and weight 0 never serve, soft only without another ready', () => {
  fc.assert(
    fc.property(anySet, anyStrategy, (set, strategy) => {
      for (const { action, endpoint } of mapEndpoints(set, { strategy })) {
        if (endpoint.intent === 'hard' || endpoint.weight === 0) expect(action).not.toBe('serve')
      }
      const unmarked = set.some((one) => fullTier(one) === 1)
      for (const { action, endpoint } of mapEndpoints(set)) {
        if (endpoint.intent === 'soft' && unmarked) expect(action).not.toBe('serve')
      }
    }),
  )
})
