import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { classify } from '../../../src/adapters/citrix-adc/codec/errors.js'
import { parseReply, rowsOf, type Row } from '../../../src/adapters/citrix-adc/codec/nitro.js'
import { StatIndex, toCounts, toMembers } from '../../../src/adapters/citrix-adc/codec/rows.js'
import { DrainableError } from '../../../src/provider/error.js'
import { holds } from '../../support/mutations.js'

function fixture(name: string): string {
  return readFileSync(new URL(`../../fixtures/citrix-adc/${name}`, import.meta.url), 'utf8')
}

/** Rows as a session passes them on: an answer without content has none. */
function rowsIn(text: string, type: string): readonly Row[] {
  const reply = parseReply(200, text)
  if (classify(reply) !== 'ok' || reply.empty || !reply.stated)
    throw new DrainableError('MALFORMED_REPLY', 'no reply of NITRO')
  return rowsOf(reply, type)
}

const BINDINGS = 'servicegroup_servicegroupmember_binding'

describe('a damaged reply', () => {
  test.each(['members-13.json', 'members-12.json'])(
    'never opens a member because of %s',
    (name) => {
      holds(
        fixture(name),
        (text) => toMembers('sg web', rowsIn(text, BINDINGS)),
        (before, after, text) => {
          // "No rows" is a reply without the type's key here.
          if (!text.includes(`"${BINDINGS}":`) || text.includes(`"${BINDINGS}":[]`)) return
          const { entries, odd } = after
          if (odd.length === 0) expect(entries).toHaveLength(before.entries.length)
          for (const [i, entry] of entries.entries()) {
            const named = before.entries.find(({ member }) => member === entry.member)
            const was = odd.length === 0 ? before.entries[i] : named
            if (was === undefined) continue
            expect([was.phase, 'unknown']).toContain(entry.phase)
            expect([was.address, undefined]).toContain(entry.address)
            expect(entry.port).toBe(was.port)
            if (entry.byMonitor) expect(was.byMonitor).toBe(true)
          }
        },
      )
    },
  )

  test('is not read as a count of a group', () => {
    const of = (text: string) =>
      rowsIn(text, 'servicegroup')
        .flatMap((row) => rowsOf({ body: row }, 'servicegroupmember'))
        .map((row) => toCounts(row, 'HTTP'))
    holds(fixture('stat-group.json'), of, (before, after, text) => {
      // A row without the number of all connections counts the established ones.
      if (text.match(/"cursrvrconnections":"?\d/g)?.length !== 2) return
      // A missing reuse pool counts as empty, which never gives a lower count.
      for (const counts of after) {
        const fits = before.some(
          (was) =>
            counts === undefined ||
            (was !== undefined && counts.active >= was.active && counts.queued === was.queued),
        )
        expect(fits).toBe(true)
        expect(counts?.active === 0 && counts.up).toBeFalsy()
      }
    })
  })

  test('is not read as a count of a service', () => {
    const busy = JSON.stringify({
      errorcode: 0,
      service: [
        {
          name: 'svc1',
          state: 'UP',
          primaryport: 80,
          svrestablishedconn: '5',
          curreusepool: '2',
          activetransactions: '3',
          surgecount: '1',
          totalrequests: '99',
        },
      ],
    })
    holds(
      busy,
      (text) => rowsIn(text, 'service').map((row) => toCounts(row, 'HTTP')),
      (_, after) => {
        for (const counts of after) {
          if (counts === undefined) continue
          expect(counts.active).toBeGreaterThanOrEqual(2)
          expect([99, undefined]).toContain(counts.arrivals)
        }
      },
    )
  })

  test('is not read as the counts of another member', () => {
    const { entries: members } = toMembers('sg web', rowsIn(fixture('members-13.json'), BINDINGS))
    const found = (text: string) => {
      const [group] = rowsIn(text, 'servicegroup')
      const index = new StatIndex(
        group === undefined ? [] : rowsOf({ body: group }, 'servicegroupmember'),
      )
      return members.map((member) => index.of(member)?.at('svrestablishedconn').value)
    }
    holds(fixture('stat-group.json'), found, (before, after) => {
      for (const [i, value] of after.entries()) {
        // This test is about which row is found; other tests are about what the row says.
        if (typeof value === 'string' || typeof value === 'number') {
          expect([before[i], undefined, 'nonsense', '', -1, 0.5, 1e300]).toContain(value)
        }
      }
    })
  })

  test('is rejected wherever it is cut', () => {
    const text = fixture('members-13.json').trim()
    fc.assert(
      fc.property(fc.nat({ max: text.length - 1 }), (at) => {
        expect(parseReply(200, text.slice(0, at)).stated).toBe(false)
      }),
    )
  })
})
