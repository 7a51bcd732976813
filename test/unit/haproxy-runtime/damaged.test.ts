import fc from 'fast-check'
import {
  parseInfo,
  parseProc,
  splitReplies,
} from '../../../src/adapters/haproxy-runtime/codec/replies.js'
import { parseStat } from '../../../src/adapters/haproxy-runtime/codec/stat.js'
import { parseServersState } from '../../../src/adapters/haproxy-runtime/codec/state.js'
import { damagedLines, holds } from '../../support/mutations.js'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const VERSIONS = ['2.6.12', '3.0.11', '3.2.26'] as const

function fixture(version: string, name: string): string {
  const url = new URL(`../../fixtures/haproxy-runtime/${version}/${name}.txt`, import.meta.url)
  return readFileSync(url, 'utf8')
}

/** A reply as a socket hands it on. */
const whole = (text: string): string => splitReplies(text, 1)[0] ?? ''

describe.each(VERSIONS)('a damaged reply of HAProxy %s', (version) => {
  it.each(['show-stat-csv', 'show-stat-queue', 'show-stat-h2-inflight'])(
    'in %s is not read as a count',
    (name) => {
      const text = `${fixture(version, name).trimEnd()}\n\n`
      const counts = (reply: string) =>
        parseStat(whole(reply)).map(({ pool, name, kind, active, queued, status }) =>
          [pool, name, kind, active, queued, status].join(),
        )
      holds(
        text,
        counts,
        (before, after) => expect(new Set(after)).toEqual(new Set(before)),
        damagedLines(text, ','),
      )
    },
  )

  it('of show servers state opens nothing and moves no server', () => {
    const text = `${fixture(version, 'show-servers-state-all').trimEnd()}\n\n`
    const states = (reply: string) =>
      parseServersState(whole(reply)).map(({ pool, name, address, port, admin, op }) =>
        [pool, name, address, port, admin, op].join(),
      )
    holds(
      text,
      states,
      (before, after) => expect(new Set(after)).toEqual(new Set(before)),
      damagedLines(text, ' '),
    )
  })

  it('cut anywhere is lost, never read as a shorter one', () => {
    const text = `${fixture(version, 'show-servers-state-all').trimEnd()}\n\n`
    fc.assert(
      fc.property(fc.nat({ max: text.length - 1 }), (at) => {
        expect(() => splitReplies(text.slice(0, at), 1)).toThrow(/after 0 of 1 replies/)
      }),
    )
  })

  it('of show proc loses no worker', () => {
    const text = `${fixture(version, 'master-show-proc-after-reload').trimEnd()}\n\n`
    const workers = (reply: string) => {
      const { current, old } = parseProc(whole(reply))
      return [...new Set([...current, ...old])].sort()
    }
    holds(
      text,
      workers,
      (before, after) => expect(after).toEqual(before),
      damagedLines(text, /(?<=\S) +/),
    )
  })

  it('of show info is not read as another process', () => {
    const text = `${fixture(version, 'show-info').trimEnd()}\n\n`
    const read = (reply: string) => {
      const { pid, stopping, connections } = parseInfo(whole(reply))
      return { pid, stopping, connections }
    }
    holds(
      text,
      read,
      (before, after) => {
        expect(after.pid).toBe(before.pid)
        expect([before.connections, Infinity]).toContain(after.connections)
      },
      damagedLines(text, /(?<=:) /),
    )
  })
})
