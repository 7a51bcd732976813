import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import {
  parseListeners,
  parseServerInfo,
  parseStart,
} from '../../../src/adapters/envoy-listener/codec/server.js'
import { parseStats, type Group } from '../../../src/adapters/envoy-listener/codec/stats.js'
import { damagedLines, holds } from '../../support/mutations.js'

const INFO = readFileSync(new URL('../../fixtures/envoy/server_info.json', import.meta.url), 'utf8')

const STATS = `http.in.downstream_cx_active: 3
http.in.downstream_cx_total: 15
http.in.downstream_rq_active: 2
http.in.downstream_rq_total: 71
http.in.health_check.request_total: 13
listener.127.0.0.1_8080.downstream_cx_active: 4
listener.127.0.0.1_8080.downstream_cx_total: 25
listener.127.0.0.1_8080.downstream_pre_cx_active: 6
udp.dns.downstream_sess_active: 8
udp.dns.downstream_sess_total: 19
server.parent_connections: 17
`

const EXTENSIONS = 'type.googleapis.com/envoy.extensions.filters'
const listener = (prefix: string, disabled: boolean) => ({
  filter_chains: [
    {
      filters: [
        {
          typed_config: {
            '@type': `${EXTENSIONS}.network.http_connection_manager.v3.HttpConnectionManager`,
            stat_prefix: prefix,
            http_filters: [
              {
                name: 'health',
                disabled,
                typed_config: { '@type': `${EXTENSIONS}.http.health_check.v3.HealthCheck` },
              },
            ],
          },
        },
      ],
    },
  ],
})

describe('a damaged reply of an admin API', () => {
  test.each([true, false])(
    'is not read as a health check filter in /config_dump (off: %s)',
    (off) => {
      const reply = JSON.stringify({
        configs: [
          { name: 'a', active_state: { listener: listener('in', off) } },
          { name: 'b', listener: listener('out', true) },
        ],
      })
      holds(
        reply,
        (text) => parseListeners([text], 'here'),
        (before, after, text) => {
          // A missing filter is not switched off, and a listener that is warming up has no active state.
          const told = before.hasHealthCheck || !text.includes('"disabled":true}')
          if (!told) expect(after.hasHealthCheck).toBe(false)
          for (const name of after.active.http) expect(before.active.http).toContain(name)
        },
      )
    },
  )

  test.each([
    ['stat_prefix', { stat_prefix: 7 }],
    ['disabled', { typed_config: {}, disabled: 'no' }],
  ])('with %s of a wrong type in /config_dump is malformed', (key, one) => {
    const manager = `${EXTENSIONS}.network.http_connection_manager.v3.HttpConnectionManager`
    const reply = JSON.stringify({ configs: [{ listener: { a: [{ '@type': manager, ...one }] } }] })
    expect(() => parseListeners([reply], 'here')).toThrow(`configs[0].listener.a[0].${key}`)
  })

  test('is not read as a drain or as another process in /server_info', () => {
    const draining = INFO.replace('"LIVE"', '"DRAINING"')
    for (const text of [INFO, draining]) {
      holds(
        text,
        (reply) => parseServerInfo(reply, 'here'),
        (before, after) => {
          // Proto3 leaves a zero out: LIVE is one, and so is the first epoch.
          expect([before.state, 'LIVE']).toContain(after.state)
          expect([before.epoch, 0]).toContain(after.epoch)
          expect(after.version).toEqual(before.version)
        },
      )
    }
  })

  test('is not read as a restart in /config_dump', () => {
    const reply = JSON.stringify({ configs: [{ last_updated: '2026-01-01T00:00:00.123Z' }] })
    holds(
      reply,
      (text) => parseStart(text, 'here'),
      (before, after, text) => {
        if (!text.includes('nonsense')) expect(after).toBe(before)
      },
    )
  })

  test('is not read as a count in /stats', () => {
    const counts = (text: string) => {
      const { http, listeners, udp, others } = parseStats(text, 'here')
      const rows = [...http, ...listeners, ...udp].map(([, group]) => group)
      return [...rows, others].flatMap((group: Group) => [...group])
    }
    holds(
      STATS,
      counts,
      (before, after) => {
        const known = new Set(before.map(([, count]) => count))
        for (const [, count] of after) expect(known).toContain(count)
      },
      damagedLines(STATS, ': '),
    )
  })
})
