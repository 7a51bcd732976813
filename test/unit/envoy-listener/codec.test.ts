import { describe, expect, test } from 'vitest'
import { withoutInner, type Inner } from '../../../src/adapters/envoy-listener/codec/inner.js'
import {
  failedChecksOf,
  isSame,
  listenersKey,
  parseStats,
  toCounts,
} from '../../../src/adapters/envoy-listener/codec/stats.js'
import {
  parseListeners,
  parseServerInfo,
} from '../../../src/adapters/envoy-listener/codec/server.js'

const NONE: ReadonlySet<string> = new Set()

function stats(values: Readonly<Record<string, number>>) {
  const lines = Object.entries(values).map(([name, value]) => `${name}: ${value}\n`)
  return parseStats(lines.join(''), 'here')
}

/** As Envoy 1.40.0 prints them: two idle clients, a WebSocket, a TCP connection, one health check. */
const BUSY = {
  'http.admin.downstream_cx_active': 1,
  'http.admin.downstream_rq_5xx': 2,
  'http.in.downstream_cx_active': 3,
  'http.in.downstream_cx_total': 5,
  'http.in.downstream_cx_upgrades_active': 1,
  'http.in.downstream_rq_active': 1,
  'http.in.downstream_rq_total': 7,
  'http.in.health_check.failed': 1,
  'http.in.health_check.request_total': 3,
  'listener.127.0.0.1_8080.downstream_cx_active': 3,
  'listener.127.0.0.1_8080.downstream_cx_total': 5,
  'listener.127.0.0.1_8080.worker_0.downstream_cx_active': 3,
  'listener.127.0.0.1_9000.downstream_cx_active': 1,
  'listener.127.0.0.1_9000.downstream_cx_total': 4,
  'listener.127.0.0.1_9000.downstream_pre_cx_active': 2,
  'listener.admin.downstream_cx_active': 1,
  'listener.admin.main_thread.downstream_cx_active': 1,
  'udp.dns.downstream_sess_active': 2,
  'udp.dns.downstream_sess_total': 9,
}

describe('counts of /stats', () => {
  test('leave out idle clients, health checks and the admin API', () => {
    expect(toCounts(stats(BUSY), NONE)).toMatchObject({
      active: 1 + 1 + 2,
      queued: 2,
      pooled: 2,
      arrivals: 7 - 3 + 4 + 9,
    })
    expect(failedChecksOf(stats(BUSY))).toBe(1)
  })

  test('name what is in flight', () => {
    expect(toCounts(stats(BUSY), NONE).hints).toEqual([
      '1 requests of http.in, 1 of them WebSockets or other upgrades',
      '1 connections that are not HTTP, among those of 127.0.0.1_8080, 127.0.0.1_9000',
      '2 sessions of udp.dns',
    ])
  })

  test('of ignored listeners do not affect the others', () => {
    const ignored = (...names: string[]) => toCounts(stats(BUSY), new Set(names))
    expect(ignored('in')).toMatchObject({ active: 3, arrivals: 4 + 9 })
    expect(ignored('127.0.0.1_9000')).toMatchObject({ active: 3, queued: 0 })
    expect(ignored('in', '127.0.0.1_9000', 'dns')).toMatchObject({ active: 0, arrivals: 0 })
  })

  test('of an ignored HTTP listener leave nothing to count', () => {
    expect(toCounts(stats(BUSY), new Set(['127.0.0.1_8080'])).isUncountable).toBe(true)
    expect(toCounts(stats(BUSY), new Set(['127.0.0.1_9000'])).isUncountable).toBe(false)
  })

  const unsent = (bytes: number, requests: number) => ({
    ...BUSY,
    'http.in.downstream_rq_active': requests,
    'http.in.downstream_cx_tx_bytes_buffered': bytes,
  })

  test('have responses that are not sent yet, once their requests are over', () => {
    const waiting = toCounts(stats(unsent(56_706, 0)), NONE)
    expect(waiting.active).toBe(1 + 1 + 2)
    expect(waiting.hints[0]).toBe(
      '56706 bytes of responses of http.in are not sent yet, their clients read slowly',
    )
    expect(toCounts(stats(unsent(56_706, 1)), NONE).active).toBe(1 + 1 + 2)
    expect(toCounts(stats(unsent(56_706, 0)), new Set(['in'])).active).toBe(1 + 2)
  })

  test('are of one moment however many bytes wait', () => {
    expect(isSame(stats(unsent(5, 0)), stats(unsent(9, 0)))).toBe(true)
    expect(isSame(stats(unsent(5, 0)), stats(unsent(0, 0)))).toBe(false)
  })

  test('say when a listener has warmed up', () => {
    const moves = ['listener_added', 'listener_modified', 'listener_in_place_updated']
    const names = [...moves, 'listener_removed'].map((name) => `listener_manager.${name}`)
    const key = (warming: number) => {
      const values = Object.fromEntries(names.map((name) => [name, 1]))
      return listenersKey(stats({ ...values, 'listener_manager.total_listeners_warming': warming }))
    }
    expect(key(0)).toBe(key(0))
    expect(key(0)).not.toBe(key(1))
  })

  test('make two answers differ if any number moves', () => {
    expect(isSame(stats(BUSY), stats(BUSY))).toBe(true)
    const moved = { ...BUSY, 'http.in.downstream_rq_total': 8 }
    expect(isSame(stats(BUSY), stats(moved))).toBe(false)
  })

  test.each([
    ['a line without its end', 'http.in.downstream_rq_active: 1', 'CONNECTION_LOST'],
    ['a text for a count', 'http.in.downstream_rq_active: many\n', 'MALFORMED_REPLY'],
    ['another page', '<html>\n', 'MALFORMED_REPLY'],
  ])('%s is not an answer', (_, text, code) => {
    expect(() => parseStats(text, 'here')).toThrow(expect.objectContaining({ code }))
  })
})

const HEALTH = 'type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck'
const MANAGER =
  'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'

function dump(filters: readonly unknown[], dynamic = false): string {
  const manager = { '@type': MANAGER, stat_prefix: 'in:1', http_filters: filters }
  const listener = { name: 'a', filter_chains: [{ filters: [{ typed_config: manager }] }] }
  return JSON.stringify({ configs: [dynamic ? { active_state: { listener } } : { listener }] })
}

describe('listeners of /config_dump', () => {
  test.each([
    ['a static listener', dump([{ typed_config: { '@type': HEALTH } }]), true],
    ['one of LDS', dump([{ typed_config: { '@type': HEALTH } }], true), true],
    ['a filter by ECDS', dump([{ config_discovery: { type_urls: [HEALTH] } }]), true],
    ['one that is disabled', dump([{ disabled: true, typed_config: { '@type': HEALTH } }]), false],
    ['none', dump([]), false],
    ['no listener at all', '{}', false],
  ])('a health check filter: %s', (_, text, found) => {
    expect(parseListeners([text], 'here').hasHealthCheck).toBe(found)
  })

  test('name connection managers as their statistics do', () => {
    expect(parseListeners([dump([]), dump([], true)], 'here')).toMatchObject({
      active: { http: ['in_1'] },
      total: 2,
    })
  })
})

/** An outer TCP listener leads to an inner HTTP one, an outer HTTP listener to an inner TCP one, which keeps connections. */
const BETWEEN = {
  'http.in.downstream_cx_active': 1,
  'http.in.downstream_cx_total': 1,
  'http.inner.downstream_cx_active': 2,
  'http.inner.downstream_cx_total': 2,
  'http.inner.downstream_rq_active': 1,
  'http.inner.downstream_rq_total': 4,
  'listener.0.0.0.0_80.downstream_cx_active': 1,
  'listener.0.0.0.0_80.downstream_cx_total': 1,
  'listener.0.0.0.0_90.downstream_cx_active': 2,
  'listener.0.0.0.0_90.downstream_cx_total': 2,
  'listener.envoy_internal_a.downstream_cx_active': 2,
  'listener.envoy_internal_a.downstream_cx_total': 2,
  'listener.mine.downstream_cx_active': 5,
  'listener.mine.downstream_cx_total': 5,
}

type InnerNames = Partial<Record<keyof Inner, readonly string[]>>

function inner(more: InnerNames = {}): Inner {
  const base: InnerNames = { listeners: ['envoy_internal_a', 'mine'], http: ['inner'], ...more }
  const set = (key: keyof Inner) => new Set(base[key])
  return {
    listeners: set('listeners'),
    http: set('http'),
    shared: set('shared'),
    outer: set('outer'),
  }
}

describe('inner listeners', () => {
  const count = (values: Readonly<Record<string, number>>, of: Inner) =>
    toCounts(withoutInner(stats(values), of), NONE)

  test('count nothing, and take nothing off the connections of clients', () => {
    expect(count(BETWEEN, inner())).toMatchObject({ active: 2, pooled: 1, arrivals: 2 })
  })

  test('are known by name where their configuration is not', () => {
    expect(count(BETWEEN, inner({ listeners: ['mine'] }))).toMatchObject({ active: 2 })
  })

  test('are not taken for an outer one of such a name', () => {
    const named = inner({ listeners: ['mine'], outer: ['envoy_internal_a'] })
    expect(count(BETWEEN, named)).toMatchObject({ active: 4 })
  })

  test('may share a connection manager with outer ones', () => {
    const values = {
      'http.in.downstream_cx_active': 3,
      'listener.0.0.0.0_80.downstream_cx_active': 1,
      'listener.0.0.0.0_90.downstream_cx_active': 2,
      'listener.envoy_internal_a.downstream_cx_active': 2,
    }
    const shared = inner({ listeners: ['envoy_internal_a'], http: [], shared: ['in'] })
    expect(count(values, shared)).toMatchObject({ active: 2 })
    const entries = Object.entries(values).filter(([name]) => !name.includes('internal'))
    expect(count(Object.fromEntries(entries), shared)).toMatchObject({ active: 3 })
  })

  test('are found in the configuration, with what they share', () => {
    const of = (prefix: string) => [
      { filters: [{ typed_config: { '@type': MANAGER, stat_prefix: prefix } }] },
    ]
    const address = { socket_address: { address: '0.0.0.0', port_value: 80 } }
    const listeners = [
      { name: 'o', address, filter_chains: of('in') },
      { name: 'a', internal_listener: {}, filter_chains: of('in') },
      { name: 'b', internal_listener: {}, stat_prefix: 'mine', filter_chains: of('inner') },
    ]
    const text = JSON.stringify({ configs: listeners.map((listener) => ({ listener })) })
    expect(parseListeners([text], 'here')).toMatchObject({
      total: 1,
      active: { http: ['in'], listeners: ['0.0.0.0_80'] },
      inner: {
        listeners: new Set(['envoy_internal_a', 'mine']),
        http: new Set(['inner']),
        shared: new Set(['in']),
        outer: new Set(['0.0.0.0_80']),
      },
    })
  })
})

test.each([
  ['no version', '{}'],
  ['the version of something else', '{"version": "2.1.0"}'],
  ['an unknown state', '{"version": "a/1.40.0/Clean/RELEASE/B", "state": "ASLEEP"}'],
  ['no JSON', 'Welcome to nginx!'],
])('/server_info with %s is not from Envoy', (_, text) => {
  expect(() => parseServerInfo(text, 'here')).toThrow(
    expect.objectContaining({ code: 'MALFORMED_REPLY' }),
  )
})
