import type { Capabilities } from 'drainable'
import type { Random } from '../random.js'

/**
 * What a provider can lie about, to show that the judge would find a library out that believes too much:
 * how long work can be hidden, how late a change can come, what is in flight, what has arrived,
 * whether a hold is in force, and whether work can be in no counter.
 */
export const LIES = ['blind', 'lateBound', 'active', 'arrivals', 'holds', 'mayHide'] as const

export type Lie = (typeof LIES)[number]

/** What kind of product the hidden balancer is, and how unreliable. */
export interface Product {
  readonly capabilities: Capabilities
  /** `workers`: a reload starts a new process beside the old one. `units`: two processes under one control plane. */
  readonly topology: 'workers' | 'units'
  /** How it says that a process has ended. */
  readonly ends: 'listed' | 'names' | 'unlisted'
  readonly countsArrivals: boolean
  /** What a new worker knows of admin states. */
  readonly afterReload: 'forgets' | 'state-file' | 'either'
  /** Longest answer, in milliseconds. */
  readonly latency: number
  /** How long a unit takes at most until it has taken a state, in milliseconds. */
  readonly takes: number
  /** Whether health is checked, and so unknown after maint. */
  readonly checked: boolean
  /** What it lies about; nothing, but to try the judge. */
  readonly lie: Lie | undefined
  /** Shares of calls that go wrong. */
  readonly failing: {
    readonly observe: number
    readonly apply: number
    readonly unread: number
    readonly unlisted: number
    readonly contradicts: number
  }
}

export function randomProduct(random: Random, lie?: Lie): Product {
  const maint = random.pick(['gentle', 'gentle', 'gentle', 'cuts', 'cuts', 'none'] as const)
  const countsArrivals = random.chance(0.85)
  const afterReload = random.pick(['forgets', 'forgets', 'state-file', 'either'] as const)
  const rough = random.chance(0.7)
  const terminate = random.chance(0.7)
  const remove = random.chance(0.8)
  const share = (most: number): number => (rough && random.chance(0.6) ? random.next() * most : 0)
  return {
    capabilities: {
      ladder: maint === 'none' ? ['ready', 'drain'] : ['ready', 'drain', 'maint'],
      maint,
      terminate,
      remove,
      removal: !terminate ? 'keeps' : maint === 'cuts' ? 'cuts' : 'refuses',
      removalReloads: !terminate,
      add: true,
      counts: 'requests',
      freshness: random.pick([0, 0, 300]),
      blind: countsArrivals ? random.pick([0, 0, 1_100]) : 0,
      lateBound: random.pick([200, 200, 3_000]),
      survivesReload: afterReload === 'state-file',
      countsAfterRemove: random.chance(0.6),
      minInterval: random.pick([0, 50, 50, 100, 200]),
    },
    topology: random.chance(0.7) ? 'workers' : 'units',
    ends: random.pick(['listed', 'listed', 'listed', 'names', 'unlisted'] as const),
    countsArrivals,
    afterReload,
    latency: random.pick([2, 10, 10, 40]),
    takes: random.pick([0, 0, 300]),
    checked: random.chance(0.4),
    lie,
    failing: {
      observe: share(0.15),
      apply: share(0.8),
      unread: share(0.1),
      unlisted: share(0.1),
      contradicts: share(0.03),
    },
  }
}
