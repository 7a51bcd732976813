import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import {
  parseFailoverStatus,
  parseLogin,
  parsePeers,
  parseReady,
} from '../../../src/adapters/f5-bigip/codec/device.js'
import { parseItems, toMembers } from '../../../src/adapters/f5-bigip/codec/members.js'
import {
  parseAllStats,
  parseNodeStats,
  parseStats,
} from '../../../src/adapters/f5-bigip/codec/stats.js'
import { parseJson, type JsonValue } from '../../../src/kit/json.js'
import { holds } from '../../support/mutations.js'

const of = (text: string): JsonValue => parseJson(text, { provider: 'f5-bigip', what: 'GET' })

function fixture(name: string): string {
  return readFileSync(new URL(`../../fixtures/f5-bigip/${name}`, import.meta.url), 'utf8')
}

const fields = (entries: object): string =>
  JSON.stringify({ entries: { 'https://localhost/0': { nestedStats: { entries } } } })

describe('a damaged reply', () => {
  test('neither loses nor opens a member', () => {
    holds(
      fixture('members.json'),
      (text) => toMembers(parseItems(of(text))),
      (before, after, text) => {
        // An empty list has no items here, so one that lost them can't be told from one.
        if (!text.includes('"items"')) return
        const lost = new Set(before.rows.map((m) => m.fullPath))
        for (const { fullPath } of after.rows) lost.delete(fullPath)
        expect(lost.size).toBeLessThanOrEqual(after.odd.length)
        for (const { fullPath, own, address, port } of after.rows) {
          const was = before.rows.find((member) => member.fullPath === fullPath)
          expect([was?.own, 'unknown']).toContain(own)
          expect([was?.address, undefined]).toContain(address)
          expect(port).toBe(was?.port)
        }
      },
    )
  })

  test.each(['stats-nested.json', 'stats-flat.json'])('is not read as a count of %s', (name) => {
    holds(
      fixture(name),
      (text) => parseStats(of(text), '/Common/shop'),
      (before, after) => {
        for (const [key, counts] of after) {
          // A row that lost the name of its pool may be of this one.
          const was = before.get(key) ?? { active: 4, queued: 2, arrivals: 1_000, sessions: 3 }
          for (const name of ['active', 'queued', 'arrivals', 'sessions'] as const) {
            expect([was[name], undefined]).toContain(counts[name])
          }
        }
      },
    )
  })

  test.each(['stats-nested.json', 'stats-flat.json'])(
    'is not read as counts of all of %s',
    (name) => {
      const was = new Map([...parseAllStats(of(fixture(name)))].flatMap(([, table]) => [...table]))
      holds(
        fixture(name),
        (text) => parseAllStats(of(text)),
        (_before, after) => {
          for (const [key, counts] of [...after.values()].flatMap((table) => [...table])) {
            expect([was.get(key)?.active, undefined]).toContain(counts.active)
          }
        },
      )
    },
  )

  test('does not make a node idle', () => {
    const path = 'https://localhost/mgmt/tm/ltm/node/~Common~a/stats'
    const entries = {
      ...{ tmName: { description: '/Common/a' }, totRequests: { value: 70 } },
      ...{ 'serverside.curConns': { value: 4 }, 'serverside.totConns': { value: 9 } },
    }
    const text = JSON.stringify({ entries: { [path]: { nestedStats: { entries } } } })
    holds(
      text,
      (given) => parseNodeStats(of(given), '/Common/a'),
      (_before, after) => {
        expect([4, undefined]).toContain(after?.active)
        expect([79, undefined]).toContain(after?.arrivals)
      },
    )
  })

  test('does not make a unit standby', () => {
    const item = (name: string, failoverState: string, selfDevice: string) => ({
      ...{ name, failoverState, selfDevice },
    })
    const items = [item('a', 'active', 'true'), item('b', 'active', 'false')]
    holds(
      JSON.stringify({ kind: 'tm:cm:device:devicecollectionstate', items }),
      (text) => parsePeers(of(text)),
      (_before, after) => {
        for (const { role } of after) expect(['standby', 'forced-offline']).not.toContain(role)
      },
    )
  })

  test('does not make a unit ready, active or standby', () => {
    const no = fields({
      configReady: { description: 'no' },
      licenseReady: { description: 'yes' },
      provisionReady: { description: 'yes' },
    })
    holds(
      no,
      (text) => parseReady(of(text)),
      (_, after) => expect(after).toBe(false),
    )
    for (const role of ['ACTIVE', 'STANDBY', 'FORCED OFFLINE']) {
      holds(
        fields({ status: { description: role } }),
        (text) => parseFailoverStatus(of(text)).role,
        (before, after) => expect([before, 'unknown']).toContain(after),
      )
    }
  })

  test('is not read as a token, and shows none', () => {
    const login = JSON.stringify({ token: { token: 'S3CRET', timeout: 1_200 } })
    holds(
      login,
      (text) => parseLogin(of(text)).token,
      (_, token) => expect(token).toBe('S3CRET'),
    )
  })
})
