import {
  mapEndpoints,
  strategies,
  type Action,
  type EndpointInput,
  type Strategy,
  type StrategyContext,
  type StrategyName,
} from 'drainable/endpoints'
import { describe, expect, test } from 'vitest'
import {
  COMBINATIONS,
  endpointsOf,
  fixture,
  STRATEGY_NAMES,
  type Matrix,
  type Vector,
} from './vectors.js'

describe.each(STRATEGY_NAMES)('vectors of %s', (strategy) => {
  const vectors = fixture(strategy) as Vector[]
  test.each(vectors)('$name', ({ endpoints, context = {}, expected }) => {
    const decisions = mapEndpoints(endpoints, { strategy, context })
    expect(decisions).toHaveLength(expected.length)
    expect(decisions).toMatchObject(expected)
    for (const decision of decisions) expect(decision.reason).toMatch(/\w/)
  })
})

describe('the full matrix: 27 combinations, 4 contexts', () => {
  const matrices = fixture('matrix') as Matrix[]

  test.each(matrices)('$strategy', ({ strategy, context, other, cells }) => {
    expect(Object.keys(cells).toSorted()).toEqual(COMBINATIONS.toSorted())
    const found = Object.fromEntries(
      Object.keys(cells).map((letters) => [
        letters,
        Object.fromEntries(
          Object.entries(other).map(([beside, its]) => {
            const set = its === null ? [letters] : [letters, its]
            return [beside, mapEndpoints(endpointsOf(...set), { strategy, context })[0]?.action]
          }),
        ),
      ]),
    )
    expect(found).toEqual(cells)
  })

  // The strategies that the recorded matrix leaves out, from the decision tables of their systems:
  // the action alone, beside an active, a terminating and an unready one.
  const COLUMNS = ['TTF', 'FTF', 'FFF', 'FTT', 'FFT', 'TTT', 'TFT', 'TFF']
  const TABLE: Record<string, string> = {
    'cilium-l4': 'SSSS DDDD DDDD SDSS DDDD SSSS SSSS SSSS',
    'envoy-gateway-1.3': 'SSSS SSSS xxxx DDDD xxxx DDDD xxxx xxxx',
    'pr4946-objection': 'SSSS SSSS DDDD SDSS DxDD SDSS DxDD DDDD',
    istio: 'SSSS DDDD DDDD xxxx xxxx SSSS SSSS SSSS',
    'ready-only-strict': 'SSSS xxxx xxxx xxxx xxxx SSSS SSSS SSSS',
    'haproxy-ingress-drain': 'SSSS DDDD DDDD DDDD DDDD DDDD DDDD SSSS',
    'gce-neg': 'SSSS SSSS SSSS xxxx xxxx xxxx xxxx SSSS',
  }
  const NIL_COLUMNS = ['---', 'F--', 'F-T', '--T', 'F-F', '-FT', '-F-']
  const NIL_TABLE: Record<string, string> = {
    'envoy-gateway-1.3': 'SSSS xxxx xxxx SSSS xxxx xxxx SSSS',
    istio: 'SSSS xxxx xxxx SSSS DDDD SSSS SSSS',
    'ready-only-strict': 'xxxx xxxx xxxx xxxx xxxx xxxx xxxx',
  }
  const LETTER = { serve: 'S', drain: 'D', exclude: 'x' } as const
  const rows = [
    ...Object.entries(TABLE).map(([name, row]) => ({ name, columns: COLUMNS, row })),
    ...Object.entries(NIL_TABLE).map(([name, row]) => ({ name, columns: NIL_COLUMNS, row })),
  ]

  test.each(rows)('$name: $columns', ({ name, columns, row }) => {
    const strategy = strategies[name as keyof typeof strategies]
    const cells = columns.map((letters) =>
      [[letters], [letters, 'TTF'], [letters, 'FTT'], [letters, 'FFF']]
        .map((set) => mapEndpoints(endpointsOf(...set), { strategy })[0]!)
        .map(({ action }) => LETTER[action])
        .join(''),
    )
    expect(cells.join(' ')).toBe(row)
  })

  /** Every cell of the strategies that the recorded matrix leaves out, by patterns: the first that fits decides. */
  const PATTERNS: readonly {
    readonly name: StrategyName
    readonly context?: StrategyContext
    readonly rules: readonly (readonly [RegExp, Action])[]
  }[] = [
    {
      name: 'envoy-gateway-1.3',
      rules: [
        [/^.F[TF]$/, 'exclude'],
        [/^.TT$/, 'drain'],
        [/^.TF$/, 'serve'],
        [/^F/, 'exclude'],
        [/^/, 'serve'],
      ],
    },
    {
      name: 'istio',
      rules: [
        [/^[T-]/, 'serve'],
        [/^F.F$/, 'drain'],
        [/^/, 'exclude'],
      ],
    },
    {
      name: 'istio',
      context: { persistentSession: true, sendUnhealthy: false },
      rules: [
        [/^[T-]/, 'serve'],
        [/^F[T-][T-]$/, 'drain'],
        [/^/, 'exclude'],
      ],
    },
    {
      name: 'ready-only-strict',
      rules: [
        [/^T/, 'serve'],
        [/^/, 'exclude'],
      ],
    },
    {
      name: 'haproxy-ingress-drain',
      rules: [
        [/T$/, 'drain'],
        [/^F/, 'drain'],
        [/^/, 'serve'],
      ],
    },
    {
      name: 'gce-neg',
      rules: [
        [/T$/, 'exclude'],
        [/^/, 'serve'],
      ],
    },
  ]

  test.each(PATTERNS)('$name, judged one by one: all 27, whatever is beside them', (one) => {
    const { name: strategy, context = {}, rules } = one
    for (const letters of COMBINATIONS) {
      const expected = rules.find(([pattern]) => pattern.test(letters))?.[1]
      for (const beside of [[], ['TTF'], ['FTT'], ['FFF']]) {
        const [decision] = mapEndpoints(endpointsOf(letters, ...beside), { strategy, context })
        expect(decision?.action, `${letters} beside ${beside.join()}`).toBe(expected)
      }
    }
  })

  test.each<
    [StrategyName, StrategyName, (letters: string, beside: string, action: Action) => Action]
  >([
    ['cilium-l4', 'cilium-l7', (_, __, action) => (action === 'exclude' ? 'drain' : action)],
    [
      'pr4946-objection',
      'pr4946-proposal',
      (letters, beside, action) =>
        /^.FT$/.test(letters) && beside === 'active' ? 'exclude' : action,
    ],
  ])('%s differs from %s where it should: all 27 in 4 contexts', (strategy, like, differing) => {
    const { other, cells } = matrices.find((one) => one.strategy === like)!
    for (const [letters, row] of Object.entries(cells)) {
      for (const [beside, action] of Object.entries(row)) {
        const its = other[beside]
        const set = endpointsOf(letters, ...(its ? [its] : []))
        const [decision] = mapEndpoints(set, { strategy })
        expect(decision?.action, `${letters} ${beside}`).toBe(differing(letters, beside, action))
      }
    }
  })

  test('every strategy answers every combination, and null is absent', () => {
    for (const strategy of STRATEGY_NAMES) {
      for (const letters of COMBINATIONS) {
        const nulls = endpointsOf(letters, 'TTF').map((one) => ({
          ...one,
          conditions: {
            ready: one.conditions?.ready ?? null,
            serving: one.conditions?.serving ?? null,
            terminating: one.conditions?.terminating ?? null,
          },
        }))
        const plain = mapEndpoints(endpointsOf(letters, 'TTF'), { strategy })
        const withNulls = mapEndpoints(nulls, { strategy })
        expect(withNulls.map(actionAndHealth)).toEqual(plain.map(actionAndHealth))
      }
    }
  })
})

describe('operators and their intents', () => {
  test.each(STRATEGY_NAMES)('%s: hard, weight 0 and soft are followed', (strategy) => {
    const [one, two] = endpointsOf('TTF', 'TTF') as [EndpointInput, EndpointInput]
    const hard = mapEndpoints([{ ...one, intent: 'hard' }, two], { strategy })
    expect(hard.map(({ action }) => action)).toEqual(['drain', 'serve'])
    const weightless = mapEndpoints([{ ...one, weight: 0 }, two], { strategy })
    expect(weightless.map(({ action }) => action)).toEqual(['drain', 'serve'])
    const soft = mapEndpoints([{ ...one, intent: 'soft' }, two], { strategy })
    const leaving = mapEndpoints(endpointsOf('FTT', 'TTF'), { strategy })
    expect(soft.map(actionAndHealth)).toEqual(leaving.map(actionAndHealth))
  })

  test('a hard intent on an endpoint that does not answer follows unready', () => {
    const [one] = endpointsOf('FFF') as [EndpointInput]
    const [drained] = mapEndpoints([{ ...one, intent: 'hard' }])
    expect(drained).toMatchObject({ action: 'drain', serving: false })
    const [excluded] = mapEndpoints([{ ...one, intent: 'hard' }], { unready: 'exclude' })
    expect(excluded).toMatchObject({ action: 'exclude', health: 'ABSENT' })
  })

  test('ifAbsent: skip keeps an endpoint out of balancers without it', () => {
    const [decision] = mapEndpoints([{ addresses: ['10.0.0.1'], ifAbsent: 'skip' }])
    expect(decision).toMatchObject({ action: 'serve', ifAbsent: 'skip' })
  })
})

describe('decisions', () => {
  test('have address, port, type, reason, weight and their subject', () => {
    const endpoint: EndpointInput = {
      addresses: ['2001:db8::1', '2001:db8::2'],
      port: 443,
      weight: 7,
      note: 'a note',
    }
    expect(mapEndpoints([endpoint])).toEqual([
      {
        address: '2001:db8::1',
        addressType: 'IPv6',
        port: 443,
        action: 'serve',
        reason: 'ready (a note)',
        health: 'HEALTHY',
        weight: 7,
        ifAbsent: 'add',
        serving: true,
        endpoint,
      },
    ])
  })

  test('leave out an endpoint without an address, and say so', () => {
    expect(mapEndpoints([{ addresses: [] }, { addresses: [''] }])).toMatchObject([
      { address: '', action: 'exclude', reason: 'it has no address' },
      { address: '', action: 'exclude' },
    ])
  })

  test('keep port names apart: another port replaces nothing', () => {
    const [old, young] = endpointsOf('FTT', 'TTF') as [EndpointInput, EndpointInput]
    const set: EndpointInput[] = [
      { ...old, port: 80, portName: 'http' },
      { ...old, port: 9090, portName: 'metrics' },
      { ...young, port: 80, portName: 'http' },
    ]
    expect(mapEndpoints(set).map(({ action }) => action)).toEqual(['drain', 'serve', 'serve'])
  })

  test('leave out what does not answer under unready: exclude', () => {
    const actions = mapEndpoints(endpointsOf('FFF', 'FFT', 'TTF'), { unready: 'exclude' })
    expect(actions.map(({ action }) => action)).toEqual(['exclude', 'exclude', 'serve'])
  })
})

describe('kube-proxy with node hints', () => {
  const hinted = (address: string, node: string): EndpointInput => ({
    addresses: [address],
    hints: { forNodes: [node], forZones: ['a'] },
  })
  const set = [hinted('10.0.0.1', 'n1'), hinted('10.0.0.2', 'n2')]

  test('node hints come before zone hints', () => {
    const context = { topology: true, nodeName: 'n1', zone: 'a' }
    const decisions = mapEndpoints(set, { strategy: 'kube-proxy', context })
    expect(decisions.map(({ action }) => action)).toEqual(['serve', 'exclude'])
  })

  test('zone hints count if there is no node hint for us', () => {
    const context = { topology: true, nodeName: 'n9', zone: 'a' }
    const decisions = mapEndpoints(set, { strategy: 'kube-proxy', context })
    expect(decisions.map(({ action }) => action)).toEqual(['serve', 'serve'])
  })

  test('hints are ignored without topology, or if a ready one has none', () => {
    const bare = { addresses: ['10.0.0.3'] }
    const near = { topology: true, nodeName: 'n1', zone: 'b' }
    for (const context of [{ nodeName: 'n1' }, near]) {
      const decisions = mapEndpoints([...set, bare], { strategy: 'kube-proxy', context })
      expect(decisions.map(({ action }) => action)).toEqual(['serve', 'serve', 'serve'])
    }
  })
})

test('istio: sendUnhealthy: false leaves out endpoints that are not ready', () => {
  const context = { sendUnhealthy: false }
  expect(mapEndpoints(endpointsOf('FFF'), { strategy: 'istio', context })).toMatchObject([
    { action: 'exclude', health: 'ABSENT' },
  ])
})

describe('strategies of the caller', () => {
  test('get the whole set, and may use the named strategies', () => {
    const inverted: Strategy = (all, context) =>
      strategies['ready-only'](all, context).map(({ action, reason }) => ({
        action: action === 'serve' ? 'exclude' : 'serve',
        reason: `not ${reason}`,
      }))
    const decisions = mapEndpoints(endpointsOf('TTF', 'FFF'), { strategy: inverted })
    expect(decisions).toMatchObject([
      { action: 'exclude', health: 'ABSENT', reason: 'not ready' },
      { action: 'serve', health: 'HEALTHY', reason: 'not not ready' },
    ])
  })

  test('see tier, said conditions and the endpoint', () => {
    const seen: unknown[] = []
    const spy: Strategy = (all) =>
      all.map(({ tier, said, ready, endpoint }) => {
        seen.push([tier, said.ready, ready, endpoint.zone])
        return { action: 'drain', reason: 'seen' }
      })
    mapEndpoints([{ addresses: ['10.0.0.1'], zone: 'a', conditions: { serving: false } }], {
      strategy: spy,
    })
    expect(seen).toEqual([[1, undefined, true, 'a']])
  })

  test.each([
    [() => [], `the length of the strategy's answer is 0, expected one verdict per endpoint, 1`],
    [() => [{ action: 'stop', reason: '' }], `answer[0].action is "stop"`],
    [() => [{ action: 'serve' }], `answer[0].reason is missing`],
    [() => 'all', `the strategy's answer is "all", expected a list of verdicts`],
  ])('fail with a wrong answer: %#', (strategy, message) => {
    expect(() => mapEndpoints(endpointsOf('TTF'), { strategy: strategy as never })).toThrow(message)
  })
})

describe('input outside the types', () => {
  test.each([
    [{}, {}, 'endpoints is an object, expected a list of endpoints'],
    [[3], {}, 'endpoints[0] is 3, expected an endpoint'],
    [[{ addresses: '10.0.0.1' }], {}, 'endpoints[0].addresses is "10.0.0.1", expected a list'],
    [[{ addresses: [7] }], {}, 'endpoints[0].addresses[0] is 7, expected a text'],
    [[{ addresses: [] }, {}], {}, 'endpoints[1].addresses is missing'],
    [
      [{ addresses: [], conditions: { ready: 'true' } }],
      {},
      'endpoints[0].conditions.ready is "true", expected true, false or null',
    ],
    [[{ addresses: [], weight: '1' }], {}, 'endpoints[0].weight is "1", expected a finite number'],
    ...[Number.NaN, Infinity, -Infinity, -1].map((weight): [unknown[], object, string] => [
      [{ addresses: ['10.0.0.1'], weight }],
      {},
      `endpoints[0].weight is ${weight}, expected a finite number from 0`,
    ]),
    [[{ addresses: [], weight: 1n }], {}, 'endpoints[0].weight is 1n, expected a finite number'],
    [[{ addresses: [], port: 99_999 }], {}, 'endpoints[0].port is 99999, expected a port from 1'],
    [[{ addresses: [], port: Number.NaN }], {}, 'endpoints[0].port is NaN, expected a port'],
    [[{ addresses: [], port: 80n }], {}, 'endpoints[0].port is 80n, expected a port'],
    [[{ addresses: [], addressType: 'IPv5' }], {}, 'endpoints[0].addressType is "IPv5"'],
    [
      [{ addresses: [], intent: 'later' }],
      {},
      `endpoints[0].intent is "later", expected 'none', 'soft' or 'hard'`,
    ],
    [[{ addresses: [], hints: { forZones: 'a' } }], {}, 'endpoints[0].hints.forZones is "a"'],
    [
      [],
      { strategy: 'kubeproxy' },
      `strategy is "kubeproxy", expected 'serve-terminating-fallback'`,
    ],
    [[], { stratgy: 'istio' }, `unknown option 'stratgy'`],
    [[], { constructor: 'istio' }, `unknown option 'constructor'`],
    [[], { unready: 'remove' }, `unready is "remove", expected 'drain' or 'exclude'`],
    [[], { context: { policy: 'local' } }, 'context.nodeName is missing'],
    [[], { context: { polcy: 'local' } }, `unknown option 'polcy'`],
  ])('%#', (endpoints, options, message) => {
    expect(() => mapEndpoints(endpoints as never, options as never)).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTIONS',
        message: expect.stringContaining(message) as string,
      }),
    )
  })
})

function actionAndHealth({ action, health }: { action: string; health: string }): string {
  return `${action} ${health}`
}
