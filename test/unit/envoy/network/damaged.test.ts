import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ClustersTextDecoder } from '../../../../src/adapters/envoy/codec/clusters-text.js'
import { parseClusters } from '../../../../src/adapters/envoy/codec/config-dump.js'
import { damagedLines, holds } from '../../../support/mutations.js'

const fixture = (name: string): string =>
  readFileSync(new URL(`../../../fixtures/envoy/${name}`, import.meta.url), 'utf8')

describe('a damaged reply of an admin API', () => {
  test('of /clusters gives no count', () => {
    const text = fixture('clusters-draining.txt')
    const read = (reply: string) => {
      const decoder = new ClustersTextDecoder()
      decoder.push(reply)
      return decoder
        .finish()
        .flatMap(({ hosts }) =>
          [...hosts.values()].map(({ member, active }) => `${member} ${active}`),
        )
    }
    holds(
      text,
      read,
      (before, after) => {
        for (const row of after) expect(before).toContain(row)
      },
      // Lines that are cut off whole are noticed by HTTP, which tells the length of the body.
      damagedLines(text, '::').filter((reply) => !text.startsWith(reply.slice(0, -1))),
    )
  })

  test('of a configuration loses no cluster and changes no setting', () => {
    const configs = JSON.stringify({
      configs: [
        {
          cluster: {
            name: 'web',
            type: 'EDS',
            eds_cluster_config: { service_name: 'web-eds' },
            health_checks: [{}],
            common_lb_config: { healthy_panic_threshold: { value: 30 } },
            connect_timeout: '0.250s',
          },
        },
      ],
    })
    holds(
      configs,
      (text) => parseClusters(text).eds,
      ([before], after, text) => {
        if (!text.includes('"type":"EDS"') || !text.includes('"configs":[{')) return
        expect(after[0]?.cluster).toBe('web')
        expect([before?.service, 'web']).toContain(after[0]?.service)
        expect([30, 50, 0, 1]).toContain(after[0]?.panicThreshold)
        expect([250, 5_000]).toContain(after[0]?.connectTimeout)
      },
    )
  })
})
