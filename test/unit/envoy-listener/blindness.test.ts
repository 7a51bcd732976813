import { describe, expect, test } from 'vitest'
import { blindness } from '../../../src/adapters/envoy-listener/codec/blindness.js'
import { parseListeners } from '../../../src/adapters/envoy-listener/codec/server.js'
import { parseStats } from '../../../src/adapters/envoy-listener/codec/stats.js'

const V3 = 'type.googleapis.com/envoy.extensions.filters'
const MANAGER = `${V3}.network.http_connection_manager.v3.HttpConnectionManager`
const UDP = `${V3}.udp.udp_proxy.v3.UdpProxyConfig`

const at = (address: string, port_value: number, protocol?: string) => ({
  address: { socket_address: { address, port_value, ...(protocol && { protocol }) } },
})
const filters = (...configs: object[]) => ({
  filter_chains: [{ filters: configs.map((typed_config) => ({ typed_config })) }],
})
const HTTP = { ...at('0.0.0.0', 80), ...filters({ '@type': MANAGER, stat_prefix: 'in' }) }
const TCP = at('2001:DB8::1', 9000)
const DNS = {
  ...at('0.0.0.0', 53, 'UDP'),
  listener_filters: [{ typed_config: { '@type': UDP, stat_prefix: 'dns' } }],
}

const listenersOf = (...listeners: object[]) =>
  parseListeners([JSON.stringify({ configs: listeners.map((listener) => ({ listener })) })], 'here')

const GROUPS = {
  'http.in': [
    'downstream_rq_active',
    'downstream_rq_total',
    'downstream_cx_active',
    'downstream_cx_total',
    'downstream_cx_tx_bytes_buffered',
    'downstream_cx_http3_active',
  ],
  'listener.0.0.0.0_80': [
    'downstream_cx_active',
    'downstream_cx_total',
    'downstream_pre_cx_active',
  ],
  'listener.[2001_db8__1]_9000': [
    'downstream_cx_active',
    'downstream_cx_total',
    'downstream_pre_cx_active',
  ],
  'listener.admin': ['downstream_cx_active', 'downstream_cx_total', 'downstream_pre_cx_active'],
  'udp.dns': ['downstream_sess_active', 'downstream_sess_total'],
} as const

const NAMES = Object.entries(GROUPS).flatMap(([group, keys]) =>
  keys.map((key) => `${group}.${key}`),
)

/** All but the hidden ones. */
const statsOf = (hidden?: string, draining = 0) =>
  parseStats(
    [...NAMES.filter((name) => name !== hidden), 'listener_manager.total_listeners_draining']
      .map((name) => `${name}: ${name.startsWith('listener_manager') ? draining : 0}\n`)
      .join(''),
    'here',
  )

describe('statistics that a proxy hides', () => {
  const all = listenersOf(HTTP, TCP, DNS)

  test('are not reported if everything is shown', () => {
    expect(blindness(statsOf(), all, new Set())).toBeUndefined()
  })

  test.each(NAMES.filter((name) => !name.startsWith('listener.admin')))('are named: %s', (name) => {
    expect(blindness(statsOf(name), all, new Set())).toContain(`do not show ${name}: let`)
  })

  test('of an ignored listener do not matter', () => {
    const hidden = 'listener.[2001_db8__1]_9000.downstream_cx_active'
    expect(blindness(statsOf(hidden), all, new Set(['[2001_db8__1]_9000']))).toBeUndefined()
  })

  test('of a listener are named by its stat_prefix without an address', () => {
    const named = listenersOf({ ...TCP, stat_prefix: 'raw:1' }, at('any.test', 1))
    expect(named.active.listeners).toEqual(['raw_1'])
  })

  test.each([
    ['a listener', { ...TCP, stat_prefix: 'admin' }],
    [
      'an HTTP connection manager',
      { ...at('0.0.0.0', 80), ...filters({ '@type': MANAGER, stat_prefix: 'admin' }) },
    ],
  ])('of %s under the name of the admin API are reported', (what, listener) => {
    const why = blindness(statsOf(), listenersOf(listener), new Set())
    expect(why).toBe(
      `${what} goes by the statistics of the admin API: give it another stat_prefix than 'admin'`,
    )
  })

  test('of a removed listener count until its drain is over', () => {
    const other = { ...at('0.0.0.0', 81), ...filters({ '@type': MANAGER, stat_prefix: 'old' }) }
    const text = JSON.stringify({
      configs: [{ listener: HTTP }, { draining_state: { listener: other } }],
    })
    const listeners = parseListeners([text], 'here')
    expect(listeners.total).toBe(1)
    expect(blindness(statsOf(undefined, 1), listeners, new Set())).toContain('http.old.')
    expect(blindness(statsOf(undefined, 0), listeners, new Set())).toBeUndefined()
  })
})
