import { isObject, refuse } from '../shape.js'
import type { EndpointConditions, Tri } from '../endpoint-input.js'

/**
 * The tier of an endpoint: the lowest number in a set is its best tier.
 *
 * | tier | conditions | meaning |
 * |---|---|---|
 * | 1 | ready, not terminating | active |
 * | 2 | terminating, serving (or tier 1 with a soft intent) | on its way out, still good |
 * | 3 | terminating, not serving, ready | published although not ready, on its way out: the last resort |
 * | 4 | not ready, not terminating | starting, or its probe fails |
 * | 5 | not ready, terminating, not serving | shutting down |
 */
export type Tier = 1 | 2 | 3 | 4 | 5

/** Conditions with nothing left open. */
export interface Conditions {
  readonly ready: boolean
  readonly serving: boolean
  readonly terminating: boolean
}

/**
 * Fills in what is not said: ready and serving are true, terminating is false. So says the API
 * text since v1.33 and so does kube-proxy; `docs/endpoint-conditions.md` lists who does not.
 */
export function normaliseConditions(given: EndpointConditions | null | undefined): Conditions {
  return {
    ready: orElse(given?.ready, true),
    serving: orElse(given?.serving, true),
    terminating: orElse(given?.terminating, false),
  }
}

/** The tier of conditions with nothing left open. Terminating beats ready: it can't be taken back. */
export function tierOf(of: Conditions): Tier {
  if (!isObject(of))
    refuse('tierOf()', 'the argument', of, 'conditions, as normaliseConditions() gives them')
  if (!of.terminating) return of.ready ? 1 : 4
  if (of.serving) return 2
  return of.ready ? 3 : 5
}

function orElse(value: Tri, fallback: boolean): boolean {
  return value ?? fallback
}
