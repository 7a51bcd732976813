import { stripVTControlCharacters } from 'node:util'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { LoadEvent } from 'drainable'
import { openPrinter } from '../../../src/cli/printer/printer.js'
import { TestIo } from '../../support/command.js'

const ref = { pool: 'web', member: 'web1' }

function load(active: number): LoadEvent {
  return {
    type: 'load',
    at: new Date().toISOString(),
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
    deadline: new Date(Date.now() + 60_000).toISOString(),
  }
}

const result = { verb: 'status', exitCode: 0 } as const

describe('the live view', () => {
  beforeEach(() => {
    vi.useFakeTimers()
    return () => vi.useRealTimers()
  })

  async function open(io: TestIo) {
    return openPrinter(io, 'words', 'drain')
  }

  test('is drawn anew in place, and the time left moves on', async () => {
    using io = new TestIo({}, { columns: 80, rows: 24 })
    const printer = await open(io)
    printer.event(load(3))
    vi.advanceTimersByTime(100)
    expect(stripVTControlCharacters(io.stderr.text)).toContain('3 in flight')
    expect(io.stdout.text).toBe('')
    vi.advanceTimersByTime(10_000)
    expect(stripVTControlCharacters(io.stderr.text)).toContain('50 s left')
    printer.end(result)
  })

  test('is drawn anew when the terminal is resized', async () => {
    using io = new TestIo({}, { columns: 80, rows: 24 })
    const printer = await open(io)
    printer.event(load(3))
    vi.advanceTimersByTime(100)
    io.stderr.text = ''
    io.stderr.resize(40, 10)
    expect(stripVTControlCharacters(io.stderr.text)).toContain('web/web1  draining\n  3')
    printer.end(result)
  })

  test('writes nothing while COMMAND has the terminal', async () => {
    using io = new TestIo({}, { columns: 80, rows: 24 })
    const printer = await open(io)
    printer.event(load(0))
    printer.pause()
    printer.pause()
    printer.resume()
    io.stderr.text = ''
    printer.event(load(1))
    vi.advanceTimersByTime(5_000)
    expect(io.stderr.text).toBe('')
    printer.resume()
    vi.advanceTimersByTime(1_000)
    expect(io.stderr.text).not.toBe('')
    printer.end(result)
  })

  test('keeps what matters as a line above it', async () => {
    using io = new TestIo({}, { columns: 80, rows: 24 })
    const printer = await open(io)
    printer.event(load(1))
    printer.event({
      type: 'overruled',
      at: 'T',
      ref,
      expected: 'drain',
      found: 'ready',
      reset: true,
    })
    printer.end(result)
    const text = stripVTControlCharacters(io.stderr.text)
    expect(text).toContain('T  web/web1: another client set ready, expected drain')
  })

  test('leaves nothing running at its end', async () => {
    using io = new TestIo({}, { columns: 80, rows: 24 })
    const printer = await open(io)
    printer.event(load(1))
    printer.end(result)
    expect(vi.getTimerCount()).toBe(0)
  })

  test.each([
    ['NO_COLOR', { NO_COLOR: '1' }, false],
    ['an empty NO_COLOR', { NO_COLOR: '' }, true],
  ])('takes %s', async (_, env, coloured) => {
    using io = new TestIo(env, { columns: 80, rows: 24 })
    const printer = await open(io)
    printer.event(load(1))
    vi.advanceTimersByTime(100)
    expect(io.stderr.text.includes('\u001b[33m')).toBe(coloured)
    printer.end(result)
  })
})

describe('plain lines', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  test.each([
    ['without a terminal', {}, {}],
    ['on a dumb terminal', { TERM: 'dumb' }, { columns: 80, rows: 24 }],
  ])('are printed %s', async (_, env, size) => {
    using io = new TestIo(env, size)
    const printer = await openPrinter(io, 'words', 'drain')
    printer.event(load(3))
    printer.event(load(3))
    printer.end(result)
    expect(io.stderr.text).toMatch(/^\S+Z {2}web\/web1: 3 in flight\n$/)
  })

  test('of watch are its output', async () => {
    using io = new TestIo()
    const printer = await openPrinter(io, 'words', 'watch')
    printer.event(load(3))
    expect(io.stdout.text).toContain('3 in flight')
    expect(io.stderr.text).toBe('')
  })

  test('hold no control character of a balancer', async () => {
    using io = new TestIo()
    const printer = await openPrinter(io, 'words', 'drain')
    const why = [{ code: 'refused', ref, text: 'no \u001b]0;x\u0007' } as const]
    printer.event({ ...load(1), why })
    expect(io.stderr.text).not.toMatch(/(?!\n)\p{Cc}/u)
  })
})
