import type { DrainableProvider } from '../../provider/contract.js'

/** The balancers of a combined provider. */
export interface Parts {
  /** By the keys that were given; they are the `balancer` of every ref. */
  readonly all: ReadonlyMap<string, DrainableProvider>
  /** Whether a balancer that an address hits nothing of is left out. */
  readonly onMissing: 'skip' | 'fail'
}

/** ESM and CJS copies of this module meet: the mark is found by any of them. */
const PARTS = Symbol.for('drainable.parts.1')

/** Marks a provider as a combined one. */
export function withParts<P extends DrainableProvider>(provider: P, parts: Parts): P {
  return Object.defineProperty(provider, PARTS, { value: parts })
}

/** The parts of a combined provider; undefined for any other. */
export function partsOf(provider: DrainableProvider): Parts | undefined {
  return (provider as unknown as Record<symbol, Parts | undefined>)[PARTS]
}
