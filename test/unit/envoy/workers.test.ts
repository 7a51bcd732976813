import { describe, expect, test } from 'vitest'
import type { Stats } from '../../../src/adapters/envoy/session/stats.js'
import { removedScope } from '../../../src/adapters/envoy/read/removed.js'
import type { ProxyView } from '../../../src/adapters/envoy/session/roster.js'
import { Workers } from '../../../src/adapters/envoy/session/workers.js'

interface Look {
  readonly at: number
  readonly misses?: number
  readonly long?: number
  readonly uptime?: number
}

/** What is said after these looks. */
function after(...looks: readonly Look[]): string | undefined {
  const workers = new Workers()
  for (const { at, misses = 0, long = 0, uptime = 0 } of looks) {
    const counts: Record<string, number> = { watchdog_miss: misses, watchdog_mega_miss: long }
    const stats = { workers: (name) => counts[name], server: () => uptime } as Partial<Stats>
    workers.seen(stats as Stats, at)
  }
  return workers.still(looks.at(-1)?.at ?? 0)
}

const STOOD = { misses: 1, long: 1 }

describe('workers of which one stood still', () => {
  test.each<[string, readonly Look[]]>([
    ['never did', [{ at: 0 }, { at: 10 }]],
    [
      'for less than the longer time of the watchdog, which has passed',
      [
        { at: 0, misses: 1 },
        { at: 2_000, misses: 1 },
      ],
    ],
    [
      'before two flushes',
      [
        { at: 0, ...STOOD },
        { at: 1, ...STOOD, uptime: 5 },
        { at: 2, ...STOOD, uptime: 10 },
      ],
    ],
  ])('go on: it %s', (_, looks) => {
    expect(after(...looks)).toBeUndefined()
  })

  test.each<[string, readonly Look[]]>([
    [
      'for less than that, a moment ago',
      [{ at: 0 }, { at: 10, misses: 1 }, { at: 2_009, misses: 1 }],
    ],
    [
      'for long, and no flush came',
      [
        { at: 0, ...STOOD },
        { at: 60_000, ...STOOD },
      ],
    ],
    [
      'before the first flush, which may have begun earlier',
      [
        { at: 0, ...STOOD },
        { at: 9_000, ...STOOD, uptime: 5 },
      ],
    ],
    [
      'before one flush, and its uptime fell as the process before a hot restart ended',
      [
        { at: 0, ...STOOD, uptime: 50 },
        { at: 1, ...STOOD, uptime: 15 },
        { at: 2, ...STOOD, uptime: 20 },
      ],
    ],
    [
      'again after two flushes',
      [
        { at: 0, ...STOOD },
        { at: 1, ...STOOD, uptime: 5 },
        { at: 2, ...STOOD, uptime: 10 },
        { at: 3, misses: 2, long: 1, uptime: 10 },
      ],
    ],
  ])('may not have taken a set: it did %s', (_, looks) => {
    expect(after(...looks)).toMatch(/stood still/)
  })
})

describe('an endpoint that another control plane has removed, where a worker stood still', () => {
  const tracker = { still: 'a worker of it stood still' }
  const reading = { incarnation: 'one', sampledAt: 0, clusters: [], tracker }
  const view = { scope: 'envoy', role: 'proxy', state: 'read', reading }
  const place = { view: view as unknown as ProxyView, service: 'web', member: 'a:80', now: 0 }

  test('may still get requests if it was never drained there', () => {
    expect(removedScope(place, undefined)).toMatchObject({ state: 'unread', note: tracker.still })
  })

  test('gets none if it was drained there', () => {
    const last = {
      incarnation: 'one',
      work: 0,
      arrivals: 7,
      begun: 7,
      isClear: false,
      isFallen: false,
    }
    expect(removedScope(place, last)).toMatchObject({ state: 'read', active: 0, arrivals: 7 })
  })
})
