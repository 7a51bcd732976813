import { describe, expect, test } from 'vitest'
import type { ClusterRows, HostRow } from '../../../src/adapters/envoy/codec/admin.js'
import type { Stats } from '../../../src/adapters/envoy/session/stats.js'
import { unlistedOf, UnlistedBounds } from '../../../src/adapters/envoy/session/unlisted.js'

type Numbers = Readonly<Record<string, number>>

function stats(numbers: Numbers): Stats {
  return {
    of: (_cluster, name) => numbers[name],
    isGone: () => false,
    versionOf: () => undefined,
    server: () => undefined,
    workers: () => undefined,
    clusters: undefined,
  }
}

function rowsWith(active: number, connections: number): ClusterRows {
  const row = { member: '10.0.0.2:80', active, connections } as HostRow
  return { cluster: 'web', service: 'web', hosts: new Map([[row.member, row]]), plain: new Map() }
}

/** One look: gauges when they were read, and what had begun before and after. */
function look(rq: { gauge: number; listed: number; begun: number }, cx = rq, waiting = 0) {
  const base = { upstream_rq_total: 100, upstream_cx_total: 10, membership_change: 1 }
  const now = {
    ...base,
    upstream_rq_active: rq.gauge,
    upstream_cx_active: cx.gauge,
    upstream_rq_pending_active: waiting,
  }
  const after = {
    ...now,
    upstream_rq_total: 100 + rq.begun,
    upstream_cx_total: 10 + cx.begun,
  }
  return unlistedOf({
    before: stats(now),
    now: stats(now),
    rows: rowsWith(rq.listed, cx.listed),
    after: stats(after),
  })
}

describe('the work of unlisted hosts', () => {
  test('is the difference if nothing began meanwhile', () => {
    expect(look({ gauge: 5, listed: 3, begun: 0 })).toMatchObject({ most: 2, isExact: true })
    expect(look({ gauge: 3, listed: 3, begun: 0 })).toMatchObject({ most: 0 })
  })

  test('is not hidden by what began after the gauge was read', () => {
    const cx = { gauge: 4, listed: 3, begun: 0 }
    // Two ended and two began: the rows show as many as the gauge, but one is not from these hosts.
    expect(look({ gauge: 3, listed: 4, begun: 2 }, cx)).toMatchObject({ most: 1, isExact: false })
  })

  test('is proved by lasting connections if requests come and go', () => {
    const cx = { gauge: 3, listed: 3, begun: 0 }
    expect(look({ gauge: 3, listed: 3, begun: 50 }, cx)).toMatchObject({ most: 0, isExact: true })
  })

  test('may be a request that waits for a connection', () => {
    const cx = { gauge: 4, listed: 3, begun: 0 }
    expect(look({ gauge: 0, listed: 0, begun: 0 }, cx, 1)).toMatchObject({ most: 1 })
  })

  test('is unknown without the statistics', () => {
    const hidden = stats({ upstream_rq_active: 0 })
    const readings = { before: hidden, now: hidden, rows: rowsWith(0, 0), after: hidden }
    expect(unlistedOf(readings)).toBeUndefined()
  })
})

describe('a bound on unlisted work', () => {
  const found = (most: number) => ({ most, isExact: false })
  const changed = (times?: number) => stats(times === undefined ? {} : { membership_change: times })

  test('holds while no host comes or goes', () => {
    const bounds = new UnlistedBounds()
    const seen = (most: number, at: number, times = 1) =>
      bounds.seen('web', found(most), changed(times), at)
    seen(5, 0)
    seen(0, 1_000)
    expect(bounds.isProved('web', changed(1), 1_050)).toBe(true)
    expect(seen(7, 1_100)).toEqual({ most: 0, isExact: true })
    expect(seen(7, 1_200, 2)).toEqual({ most: 7, isExact: false })
    expect(bounds.isProved('web', changed(2), 1_300)).toBe(false)
  })

  test('is not kept right after a change that a worker may not know of', () => {
    const bounds = new UnlistedBounds()
    bounds.seen('web', found(0), changed(1), 0)
    expect(bounds.isProved('web', changed(1), 500)).toBe(false)
    expect(bounds.seen('web', found(3), changed(1), 500)).toMatchObject({ most: 3 })
  })

  test('is not kept if changes are not shown', () => {
    const bounds = new UnlistedBounds()
    for (const at of [0, 2_000]) bounds.seen('web', { most: 0, isExact: true }, changed(), at)
    expect(bounds.isProved('web', changed(), 2_050)).toBe(false)
    expect(bounds.seen('web', found(3), changed(), 2_100)).toMatchObject({ most: 3 })
  })
})
