import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { LoadEvent } from 'drainable'
import { Board } from '../../../src/cli/view/board.js'
import { drawFrame, sparkline, type Terminal } from '../../../src/cli/view/frame.js'

const START = Date.parse('2026-01-01T00:00:00.000Z')
const iso = (ms: number): string => new Date(START + ms).toISOString()
const PLAIN: Terminal = { columns: 80, rows: 24, colours: false, unicode: true }

function load(
  member: string,
  at: number,
  active: number,
  more: Partial<LoadEvent> = {},
): LoadEvent {
  const ref = { pool: 'web', member }
  return {
    type: 'load',
    at: iso(at),
    ref,
    active,
    oldest: null,
    queued: 0,
    complete: true,
    why: [{ code: 'in-flight', ref, text: `${active} in flight` }],
    phase: 'draining',
    own: 'drain',
    health: 'up',
    scopes: [],
    deadline: iso(120_000),
    ...more,
  }
}

function frame(board: Board, now: number, terminal: Partial<Terminal> = {}): string {
  return drawFrame(board, START + now, { ...PLAIN, ...terminal })
}

describe('a frame', () => {
  test('says load, trend, oldest work, time left and reasons', () => {
    const board = new Board()
    board.hear(load('web1', 0, 8))
    board.hear(load('web1', 30_000, 4, { queued: 2, oldest: 12_345 }))
    expect(frame(board, 38_000).split('\n')).toEqual([
      'web/web1  draining  4+2 queued         ███████████▇▇  oldest 12 s  1 m 22 s left',
      '  4 in flight',
    ])
  })

  test('has the trends of all members below each other', () => {
    const board = new Board()
    board.hear(load('web9', 0, 4, { queued: 2 }))
    board.hear(load('web10', 0, 4))
    const rows = frame(board, 1_000).split('\n')
    expect(rows[0]?.indexOf('█')).toBe(rows[2]?.indexOf('█'))
  })

  test('of a narrow terminal has the numbers on a line of their own', () => {
    const board = new Board()
    board.hear(load('web1', 0, 8))
    const lines = frame(board, 1_000, { columns: 40 }).split('\n')
    expect(lines[0]).toBe('web/web1  draining')
    expect(lines[1]).toMatch(/^ {2}8 +█ {2}1 m 59 s left$/)
  })

  test.each([20, 40, 80, 120])('never is wider than the terminal: %i columns', (columns) => {
    const board = new Board()
    for (const member of ['web1', 'a-member-with-a-very-long-name-of-its-own'])
      board.hear(load(member, 0, 8, { oldest: 99_000, queued: 3, complete: false }))
    for (const line of frame(board, 1_000, { columns, colours: true }).split('\n'))
      expect(stripVTControlCharacters(line).length).toBeLessThanOrEqual(columns)
  })

  test('never is higher than the terminal, and says how many are left out', () => {
    const board = new Board()
    for (let i = 0; i < 40; i += 1) board.hear(load(`web${i}`, 0, i))
    const lines = frame(board, 0, { rows: 10 }).split('\n')
    expect(lines).toHaveLength(9)
    expect(lines.at(-1)).toBe('and 36 more')
  })

  test('has a process that can not be read as a lower bound', () => {
    const board = new Board()
    board.hear(load('web1', 0, 3, { complete: false }))
    expect(frame(board, 0)).toContain('3 or more')
  })

  test('prints no control character of a balancer', () => {
    const board = new Board()
    const ref = { pool: 'web', member: 'a' }
    const text = 'note \u001b[31mred\u0007'
    board.hear(load('we\u001b[2Jb1', 0, 1, { why: [{ code: 'refused', ref, text }] }))
    expect(frame(board, 0)).not.toMatch(/(?!\n)\p{Cc}/u)
  })

  test('without colours has no escape sequence', () => {
    const board = new Board()
    board.hear(load('web1', 0, 1))
    expect(frame(board, 0)).not.toContain('\u001b')
    expect(frame(board, 0, { colours: true })).toContain('\u001b[33mdraining')
  })

  test('shows an idle member by its proof, below those that wait', () => {
    const board = new Board()
    const ref = { pool: 'web', member: 'web1' }
    board.hear(load('web1', 0, 0, { phase: 'idle', why: [] }))
    const proof = {
      arrivals: 'unchanged',
      quietSince: iso(0),
      samples: [],
      text: 'web/web1: 0 left',
    }
    board.hear({ type: 'idle', at: iso(0), ref, proof: proof as never })
    board.hear(load('web2', 0, 1))
    expect(
      frame(board, 0)
        .split('\n')
        .map((line) => line.slice(0, 18).trimEnd()),
    ).toEqual(['web/web2  draining', '  1 in flight', 'web/web1  idle', '  0 left'])
  })

  test('follows a server of a roll through COMMAND to ready', () => {
    const board = new Board()
    const ref = { pool: 'web', member: 'web1' }
    const refs = [ref, { pool: 'api', member: 'api1' }]
    const step = (type: 'act' | 'ready' | 'healthy') =>
      board.hear({ type, at: iso(0), ref, refs, attempt: 1 })
    const words = () =>
      frame(board, 0)
        .split('\n')
        .map((line) => line.trimEnd())
    step('act')
    expect(words()).toEqual(['web/web1  command', 'api/api1  command'])
    step('ready')
    expect(words()).toEqual(['web/web1  opening', 'api/api1  opening'])
    step('healthy')
    expect(words()).toEqual(['web/web1  ready', 'api/api1  ready'])
  })
})

describe('the trend', () => {
  const at = (ms: number, busy: number) => ({ at: START + ms, busy })

  test('is the load of the last minute, oldest first', () => {
    const trend = [at(0, 8), at(15_000, 4), at(30_000, 2), at(45_000, 0)]
    expect(sparkline(trend, START + 60_000, 4)).toBe('█▅▃▁')
    expect(sparkline(trend, START + 90_000, 4)).toBe('▃▁▁▁')
  })

  test('is blank before the first look', () => {
    expect(sparkline([at(0, 1)], START + 1_000, 4)).toBe('   █')
  })

  test('is ASCII where the terminal has no more', () => {
    expect(sparkline([at(0, 8)], START + 1_000, 4, false)).toBe('   @')
  })
})
