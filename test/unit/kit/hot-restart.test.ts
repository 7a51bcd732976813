import { expect, test } from 'vitest'
import { parseServerInfo } from '../../../src/kit/envoy/answers.js'
import { Parent, parentTrace } from '../../../src/kit/envoy/parent.js'

const DEFAULT = 900_000
const FIGURES = { parent_connections: 0, uptime: 5_100 } as const

/** A child that has run for that long, in seconds, by its statistics. */
function traceOf(current: number, figures: Readonly<Record<string, number>>, options = {}) {
  const text = JSON.stringify({
    version: 'a/1.40.0/Clean/RELEASE/B',
    state: 'LIVE',
    uptime_current_epoch: `${current}s`,
    uptime_all_epochs: `${current + 100}s`,
    command_line_options: { restart_epoch: 1, ...options },
  })
  const info = parseServerInfo(text, { provider: 'test', what: 'here' })
  return parentTrace(info, (name) => figures[name])
}

test('a parent of a child that is long up has ended, if it shows no connection', () => {
  expect(new Parent(0, DEFAULT).seen(traceOf(5_000, FIGURES), 0).isEnded).toBe(true)
})

test('a parent with connections has not ended because its child is long up', () => {
  const busy = { ...FIGURES, parent_connections: 3 }
  const { isEnded, isClosed } = new Parent(0, DEFAULT).seen(traceOf(5_000, busy), 0)
  expect([isEnded, isClosed]).toEqual([false, false])
})

test('a parent whose statistics are not handed on is unknown until its time is over', () => {
  const parent = new Parent(0, DEFAULT)
  const trace = traceOf(5_000, FIGURES, { skip_hot_restart_parent_stats: true })
  for (const now of [0, 30_000, DEFAULT]) {
    expect(parent.seen(trace, now)).toMatchObject({ isClosed: false, connections: undefined })
  }
  expect(parent.seen(trace, DEFAULT + 2_000).isEnded).toBe(true)
})

test('connections of a parent that was a child too are an upper bound, and said so', () => {
  const busy = { ...FIGURES, parent_connections: 1, uptime: 103 }
  expect(new Parent(1, DEFAULT).seen(traceOf(3, busy), 0).note).toContain('up to 1 connections')
  expect(new Parent(0, DEFAULT).seen(traceOf(3, busy), 0).note).toContain('has 1 connections')
})
