import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ClustersTextDecoder } from '../../../../src/adapters/envoy/codec/clusters-text.js'
import { sizeOf, sumOf } from '../../../../src/adapters/envoy/codec/admin.js'
import { adoptable, parseClusters } from '../../../../src/adapters/envoy/codec/config-dump.js'
import {
  parseBootStamp,
  parseServerInfo,
  parseStatLines,
} from '../../../../src/kit/envoy/answers.js'
import type { JsonObject } from '../../../../src/kit/json.js'
import { textForm } from '../../../support/envoy/text-form.js'

const ENVOY = { provider: 'envoy', what: 'Envoy' }
const fixture = (name: string): string =>
  readFileSync(new URL(`../../../fixtures/envoy/${name}`, import.meta.url), 'utf8')

function inText(text: string, size = text.length) {
  const decoder = new ClustersTextDecoder(['web'])
  for (let i = 0; i < text.length; i += size) decoder.push(text.slice(i, i + size))
  return decoder.finish()
}

describe('/clusters', () => {
  const text = fixture('clusters-draining.txt')

  test('reads the rows of every host', () => {
    const [rows] = inText(text)
    expect([...(rows?.hosts.values() ?? [])]).toMatchObject([
      {
        member: '127.0.0.1:24302',
        eds: 'DRAINING',
        excluded: true,
        active: 0,
        connections: 2,
        begun: 4,
      },
      { member: '127.0.0.1:24305', eds: 'HEALTHY', active: 1, pending: 0, begun: 6 },
      { member: '127.0.0.1:24308', priority: 1 },
    ])
  })

  test.each([1, 2, 7, 64, 1_000])('reads the text form in pieces of %d', (size) => {
    expect(inText(text, size)).toEqual(inText(text))
  })

  test('reads the text form with IPv6, a pipe and other clusters', () => {
    const lines = [
      'rq_active::2',
      'rq_total::3',
      'cx_total::1',
      'health_flags::/failed_active_hc/eds_status_draining',
    ]
    const rows = inText(
      ['[2001:db8::1]:80', '/run/app.sock']
        .flatMap((host) => lines.map((line) => `web::${host}::${line}`))
        .concat('web::default_priority::max_connections::1024', 'api::10.0.0.1:80::rq_active::9')
        .map((line) => `${line}\n`)
        .join(''),
    )
    expect(rows).toHaveLength(1)
    expect([...(rows[0]?.hosts.keys() ?? [])]).toEqual(['[2001:db8::1]:80', '/run/app.sock'])
    expect(rows[0]?.hosts.get('/run/app.sock')).toMatchObject({
      active: 2,
      begun: 4,
      pending: undefined,
      eds: 'DRAINING',
      failedCheck: true,
    })
  })

  describe('in text form, of many hosts', () => {
    const address = (i: number) => `10.0.${i >> 8}.${i & 255}:80`
    const many = Array.from({ length: 300 }, (_, i) => {
      const flags = i % 100 === 50 ? '/eds_status_draining' : 'healthy'
      const values = {
        cx_active: i % 3,
        rq_active: i % 2,
        rq_pending_active: 0,
        rq_total: i,
        hostname: i === 7 ? 'a::health_flags::healthy' : '',
        health_flags: flags,
        weight: 1,
        priority: i < 200 ? 0 : 1,
        success_rate: -1,
      }
      return Object.entries(values).map(([key, value]) => `web::${address(i)}::${key}::${value}\n`)
    })
    const whole = ['web::added_via_api::false\n', ...many.flat()].join('')
    const some = (size: number) => {
      const decoder = new ClustersTextDecoder(['web'], 'Envoy', new Set([address(3)]))
      for (let i = 0; i < whole.length; i += size) decoder.push(whole.slice(i, i + size))
      return decoder.finish()[0]
    }

    test('those asked for and those not healthy are read', () => {
      const hosts = [...(some(whole.length)?.hosts.keys() ?? [])]
      expect(hosts).toEqual([3, 50, 150, 250].map(address))
    })

    test('others are counted together, by priority', () => {
      const sums = some(whole.length)?.plain
      expect(sums?.get(0)).toEqual({ count: 197, active: 99, connections: 197 })
      expect(sums?.get(1)).toMatchObject({ count: 99 })
    })

    test.each([1, 100, 999, 4_096])('no host is lost in pieces of %d', (size) => {
      const [cut, all] = [some(size), inText(whole)[0]]
      if (cut === undefined || all === undefined) throw new Error('no cluster')
      expect(sizeOf(cut)).toBe(300)
      for (const of of ['active', 'connections'] as const)
        expect(sumOf(cut, of)).toBe(sumOf(all, of))
      expect(cut.hosts.get(address(150))).toEqual(all.hosts.get(address(150)))
    })
  })

  test('does not read a host without counts as zero', () => {
    expect(() => inText('web::10.0.0.1:80::cx_active::1\n')).toThrow()
  })

  test('reads flags: failed checks, pending removal, other statuses', () => {
    const rows = (name: string) => [...(inText(textForm(fixture(name)))[0]?.hosts.values() ?? [])]
    expect(rows('clusters-failed-active-hc.json').some(({ failedCheck }) => failedCheck)).toBe(true)
    expect(
      rows('clusters-pending-dynamic-removal.json').some(({ pendingRemoval }) => pendingRemoval),
    ).toBe(true)
    expect(rows('clusters-timeout-degraded-unhealthy.json').map(({ eds }) => eds)).toEqual([
      'UNHEALTHY',
      'DEGRADED',
      'UNHEALTHY',
    ])
  })

  test('is incomplete in text form without the end of its last line', () => {
    expect(() => inText(text.slice(0, -1))).toThrow(
      expect.objectContaining({ code: 'CONNECTION_LOST' }),
    )
    expect(() => parseStatLines('cluster.web.upstream_rq_active: 1', ENVOY)).toThrow(
      expect.objectContaining({ code: 'CONNECTION_LOST' }),
    )
  })

  const lines = (address: string, active: string): string =>
    `web::${address}::rq_active::${active}\nweb::${address}::rq_total::0\n`

  test.each([
    ['any text for an address', lines('web1', '0')],
    ['a count below 0', lines('10.0.0.1:80', '-1')],
    ['a count that is no number', lines('10.0.0.1:80', 'many')],
  ])('%s is malformed', (_, reply) => {
    expect(() => inText(reply)).toThrow(expect.objectContaining({ code: 'MALFORMED_REPLY' }))
  })
})

describe('versions and settings', () => {
  test('reads the version', () => {
    expect(parseServerInfo(fixture('server_info.json'), ENVOY).version.text).toBe('1.40.0')
    expect(() => parseServerInfo('{"version":"?"}', ENVOY)).toThrow()
  })

  test('reads the settings of a cluster with the defaults of proto3', () => {
    const configs = [
      {
        name: 'web',
        type: 'EDS',
        connect_timeout: '0.250s',
        eds_cluster_config: { service_name: 'svc' },
        health_checks: [{}],
        common_lb_config: {
          healthy_panic_threshold: {},
          update_merge_window: '0s',
          override_host_status: { statuses: ['DRAINING'] },
        },
      },
      { name: 'api', type: 'EDS', common_lb_config: { healthy_panic_threshold: { value: 30 } } },
      { name: 'other', type: 'STATIC' },
    ]
    const text = JSON.stringify({
      configs: configs.map((cluster) => ({ cluster, last_updated: '2026-01-01T00:00:00.123Z' })),
    })
    expect(parseClusters(text).eds).toMatchObject([
      {
        cluster: 'web',
        service: 'svc',
        activeChecks: true,
        panicThreshold: 0,
        mergeWindow: 0,
        connectTimeout: 250,
        returningAs: 'DRAINING',
      },
      {
        cluster: 'api',
        service: 'api',
        activeChecks: false,
        panicThreshold: 30,
        mergeWindow: 1_000,
        connectTimeout: 5_000,
      },
    ])
    expect(parseBootStamp(text, ENVOY)).toBe('2026-01-01T00:00:00.123Z')
    expect(parseBootStamp('{}', ENVOY)).toBeUndefined()
  })

  const CHECKED = { health_checks: [{}] }
  test.each([
    [['DRAINING', 'UNHEALTHY'], CHECKED, 'DRAINING', true],
    [['UNHEALTHY'], CHECKED, 'UNHEALTHY', true],
    [['UNHEALTHY'], { outlier_detection: {} }, 'UNHEALTHY', true],
    [['UNHEALTHY'], {}, undefined, true],
    [['HEALTHY', 'TIMEOUT'], CHECKED, undefined, false],
  ])('reads whom sessions come back to: %j, %j', (statuses, more, returningAs, unhealthy) => {
    const common_lb_config = { override_host_status: { statuses } }
    const cluster = { name: 'web', type: 'EDS', common_lb_config, ...more }
    const [config] = parseClusters(JSON.stringify({ configs: [{ cluster }] })).eds
    expect(config?.returningAs).toBe(returningAs)
    expect(config?.stickyWhileUnhealthy).toBe(unhealthy)
  })

  test('reads stats', () => {
    const stats = parseStatLines(fixture('stats-cluster-web.txt'), ENVOY)
    expect(stats.get('cluster.web.version_text')).toBe('5')
    expect(stats.get('cluster.web.upstream_rq_active')).toBe('1')
  })
})

describe('adoption', () => {
  const text = fixture('clusters-draining.txt')
  const dump = (
    JSON.parse(fixture('config_dump-endpoints.json')) as {
      static_endpoint_configs: { endpoint_config: JsonObject }[]
    }
  ).static_endpoint_configs[0]!.endpoint_config

  test('takes statuses from /clusters, because the dump reports drained as ill', () => {
    const rows = inText(text)[0]!.hosts
    const set = adoptable(dump, rows)
    expect(set.endpoints.map(({ status }) => status)).toEqual(['DRAINING', 'HEALTHY', 'HEALTHY'])
    expect(set.endpoints.map(({ priority }) => priority)).toEqual([0, 0, 1])
    expect(JSON.stringify(set.toJson())).not.toContain('"load_balancing_weight":0')
  })

  test('leaves removed hosts out', () => {
    const rows = inText(textForm(fixture('clusters-pending-dynamic-removal.json')))[0]!.hosts
    const set = adoptable(dump, rows)
    expect(set.endpoints.map(({ member }) => member)).not.toContain('127.0.0.1:24302')
    expect(set.endpoints).toHaveLength(2)
  })
})
