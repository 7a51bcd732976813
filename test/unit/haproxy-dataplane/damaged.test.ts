import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  parseProcessInfo,
  parseRuntimeServers,
  parseStats,
} from '../../../src/adapters/haproxy-dataplane/codec/replies.js'
import { judge } from '../../../src/adapters/haproxy-dataplane/read/state.js'
import { isDrainableError } from '../../../src/provider/error.js'
import { recordings } from '../../support/dataplane-recordings.js'
import { decoded, holds } from '../../support/mutations.js'

/** The longest good answer to a GET of that path in the recordings of one tree. */
function longest(tree: 'v2' | 'v3', path: RegExp): string {
  const texts = recordings()
    .filter((recording) => recording.tree === tree)
    .flatMap(({ exchanges }) => exchanges)
    .filter(({ request, response }) => {
      const asked = request.method === 'GET' && path.test(request.path.split('?')[0] ?? '')
      return asked && response.status === 200 && typeof response.body === 'object'
    })
    .map(({ response }) => JSON.stringify(response.body))
    .sort((one, other) => other.length - one.length)
  if (texts[0] === undefined) throw new Error(`nothing is recorded of ${path.source} of ${tree}`)
  return texts[0]
}

const all = (): boolean => true
const keyOf = ({ pool, member }: { readonly pool: string; readonly member: string }): string =>
  `${pool}/${member}`

describe.each(['v2', 'v3'] as const)('a damaged reply of %s', (tree) => {
  test('is not read as a count, and opens no server', () => {
    holds(
      longest(tree, /\/stats\/native$/),
      (text) => ofOneProcess(() => parseStats(text, all).rows),
      (before = [], after, text) => {
        if (after === undefined) return
        // Without the key "stats" no row matched, which the other source contradicts.
        if (!text.includes('"stats":[')) return
        expect(new Set(after.map(keyOf))).toEqual(new Set(before.map(keyOf)))
        for (const row of after) {
          const was = before.find((one) => keyOf(one) === keyOf(row))
          const { scur, qcur, arrivals, status } = row
          expect(was).toMatchObject({ scur, qcur, arrivals, status })
          expect([was?.address, undefined]).toContain(row.address)
          const own = judge(row, undefined).own
          // A drain that it inherits is told by the tracked server alone; the state itself stays closed.
          expect([was && judge(was, undefined).own, 'unknown', 'drain']).toContain(own)
        }
      },
    )
  })

  test('is not read as another process', () => {
    const text = longest(tree, /\/runtime\/info$/)
    const { pid, uptime } = parseProcessInfo(text)
    holds(
      text,
      (damaged) => ofOneProcess(() => parseProcessInfo(damaged)),
      (_, after) => expect(after ?? { pid, uptime }).toMatchObject({ pid, uptime }),
    )
  })

  test('makes no server ready or absent', () => {
    holds(longest(tree, LIST), parseRuntimeServers, (before, after) => {
      expect(new Set(after.map(({ name }) => name))).toEqual(
        new Set(before.map(({ name }) => name)),
      )
      for (const server of after) {
        const was = before.find(({ name }) => name === server.name)
        expect([was?.admin, undefined]).toContain(server.admin)
        expect([was?.address, '']).toContain(server.address)
      }
    })
  })

  test('is rejected wherever it is cut', () => {
    const text = longest(tree, /\/stats\/native$/)
    fc.assert(
      fc.property(fc.nat({ max: text.length - 1 }), (at) => {
        expect(decoded((cut) => parseStats(cut, all), text.slice(0, at))).toBeUndefined()
      }),
      { numRuns: 1_500 },
    )
  })
})

/** Servers of the runtime. */
const LIST = /\/runtime\/(.*\/)?servers$/

/** A reply without any process reads as "can't be reached", and one of several is refused. */
function ofOneProcess<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch (error) {
    if (isDrainableError(error, 'UNREACHABLE', 'UNSUPPORTED')) return undefined
    throw error
  }
}
