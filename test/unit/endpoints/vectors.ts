import { readFileSync } from 'node:fs'
import type {
  Action,
  EndpointHealth,
  EndpointInput,
  StrategyContext,
  StrategyName,
} from 'drainable/endpoints'

/** One case of `<strategy>.json`. */
export interface Vector {
  readonly name: string
  readonly source: string
  readonly strategy: StrategyName
  readonly context?: StrategyContext
  readonly endpoints: readonly EndpointInput[]
  readonly expected: readonly {
    readonly address: string
    readonly action: Action
    readonly health?: EndpointHealth
  }[]
}

/** One strategy of `matrix.json`: the action of an endpoint with given conditions beside another. */
export interface Matrix {
  readonly strategy: StrategyName
  readonly context: StrategyContext
  readonly other: Readonly<Record<string, string | null>>
  readonly cells: Readonly<Record<string, Readonly<Record<string, Action>>>>
}

/** One case of `slice-merge.json`. */
export interface MergeVector {
  readonly name: string
  readonly slices: readonly unknown[]
  readonly options: { readonly portName?: string; readonly defaultPort?: number }
  readonly expected: readonly unknown[]
}

/** One case of `pod-conditions.json`. */
export interface PodVector {
  readonly name: string
  readonly pod: { readonly ready: boolean; readonly deleting?: boolean }
  readonly service: { readonly publishNotReadyAddresses: boolean }
  readonly expected: {
    readonly ready: boolean
    readonly serving: boolean
    readonly terminating: boolean
  }
}

export const STRATEGY_NAMES: readonly StrategyName[] = [
  'serve-terminating-fallback',
  'kube-proxy',
  'cilium-l4',
  'cilium-l7',
  'envoy-gateway',
  'envoy-gateway-1.3',
  'pr4946-proposal',
  'pr4946-objection',
  'istio',
  'ready-only',
  'ready-only-strict',
  'haproxy-ingress-drain',
  'traefik',
  'gce-neg',
]

/** Reads a file of test/fixtures/endpoint-conditions. */
export function fixture(name: string): unknown {
  const url = new URL(`../../fixtures/endpoint-conditions/${name}.json`, import.meta.url)
  return JSON.parse(readFileSync(url, 'utf8'))
}

/** All 27 combinations, three letters each: ready, serving, terminating; `-` is not said. */
export const COMBINATIONS: readonly string[] = ['T', 'F', '-'].flatMap((r) =>
  ['T', 'F', '-'].flatMap((s) => ['T', 'F', '-'].map((t) => r + s + t)),
)

/** `TF-` as conditions; `nil` chooses how "not said" is written. */
export function conditionsOf(
  letters: string,
  nil?: null,
): {
  ready: boolean | null | undefined
  serving: boolean | null | undefined
  terminating: boolean | null | undefined
} {
  const [ready, serving, terminating] = Array.from(letters, (letter) =>
    letter === '-' ? nil : letter === 'T',
  )
  return { ready, serving, terminating }
}

/** Endpoints 10.0.0.1, 10.0.0.2, ... with these conditions. */
export function endpointsOf(...letters: readonly string[]): EndpointInput[] {
  return letters.map((one, i) => ({
    addresses: [`10.0.0.${i + 1}`],
    conditions: conditionsOf(one),
  }))
}
