import { describe, expect, test } from 'vitest'
import { parseClusters } from '../../../../src/adapters/envoy/codec/config-dump.js'
import { parseStatsMatcher } from '../../../../src/adapters/envoy/codec/stats-matcher.js'

const GAUGE = 'cluster.web.upstream_rq_active'

function shows(stats_matcher: object | undefined, name = GAUGE): boolean {
  const stats_config = stats_matcher === undefined ? {} : { stats_config: { stats_matcher } }
  return parseStatsMatcher(JSON.stringify({ configs: [{ bootstrap: stats_config }] }))(name)
}
const excluding = (...patterns: object[]) => ({ exclusion_list: { patterns } })
const including = (...patterns: object[]) => ({ inclusion_list: { patterns } })

describe('a stats_matcher', () => {
  test.each([
    ['none', undefined, true],
    ['an empty one', {}, true],
    ['reject_all', { reject_all: true }, false],
    ['an exclusion of nothing', excluding(), true],
    ['an inclusion of nothing', including(), false],
    ['a prefix', excluding({ prefix: 'cluster.web.' }), false],
    ['another prefix', excluding({ prefix: 'cluster.webs.' }), true],
    ['a suffix', excluding({ suffix: 'rq_active' }), false],
    ['a part', excluding({ contains: 'upstream' }), false],
    ['an exact name', excluding({ exact: GAUGE }), false],
    ['another case', excluding({ prefix: 'CLUSTER.WEB' }), true],
    ['another case that is ignored', excluding({ prefix: 'CLUSTER', ignore_case: true }), false],
    ['a regex', excluding({ safe_regex: { regex: 'cluster\\..*_rq_.*' } }), false],
    ['a regex of a part of the name', excluding({ safe_regex: { regex: 'cluster' } }), true],
    ['one of several', including({ prefix: 'server.' }, { prefix: 'cluster.' }), true],
    ['none of several', including({ prefix: 'server.' }, { prefix: 'http.' }), false],
  ])('with %s', (_, matcher, expected) => {
    expect(shows(matcher)).toBe(expected)
  })

  test.each([
    ['a class of RE2', '[[:alpha:]]+'],
    ['a flag of RE2', '(?i)server'],
    ['a repeated group', '(a+)+'],
  ])('that can not be judged shows nothing: %s', (_, regex) => {
    for (const matcher of [excluding, including]) {
      expect(shows(matcher({ safe_regex: { regex } }))).toBe(false)
    }
    expect(shows(excluding({ custom: { name: 'own' } }))).toBe(false)
  })

  test('of a cluster is read with its configuration', () => {
    const own = { '@type': 'x', reject_all: true }
    const metadata = { typed_filter_metadata: { 'envoy.stats_matcher': own } }
    const cluster = { name: 'web', type: 'EDS', metadata }
    const { eds } = parseClusters(JSON.stringify({ configs: [{ cluster }] }))
    expect(eds[0]?.shows?.(GAUGE)).toBe(false)
  })
})
