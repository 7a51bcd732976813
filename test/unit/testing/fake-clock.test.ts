import { describe, expect, test } from 'vitest'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileTickets, startDrain, type DrainEvent } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { temporaryFolder } from '../tickets/set-up.js'
import { pause } from '../../../src/provider/clock.js'

describe('fakeClock', () => {
  test('stands still, at 0 or where it is told to start', () => {
    expect(fakeClock().now()).toBe(0)
    expect(fakeClock(1_000).now()).toBe(1_000)
  })

  test.each(['1m', NaN, -1, undefined, null])('is not moved by %j', async (ms) => {
    const clock = fakeClock()
    await expect(clock.advance(ms as number)).rejects.toThrow('advance(): expected milliseconds')
    if (ms !== undefined) expect(() => fakeClock(ms as number)).toThrow('startAt: expected')
    expect(clock.now()).toBe(0)
  })

  test('runs until a promise, and not a function', async () => {
    const clock = fakeClock()
    const given = (() => Promise.resolve()) as never
    await expect(clock.runUntil(given)).rejects.toThrow(
      'expected a promise, found a function: call',
    )
  })

  test('fires each timer at its own moment, in order', async () => {
    const clock = fakeClock(100)
    const fired: [string, number][] = []
    const note = (name: string) => () => fired.push([name, clock.now()])
    clock.setTimeout(note('b'), 20)
    clock.setTimeout(note('a'), 10)
    clock.setTimeout(note('a2'), 10)
    clock.setTimeout(note('late'), 31)
    await clock.advance(30)
    expect(fired).toEqual([
      ['a', 110],
      ['a2', 110],
      ['b', 120],
    ])
    expect(clock.now()).toBe(130)
    expect(clock.pending).toBe(1)
  })

  test('lets promises settle between two timers', async () => {
    const clock = fakeClock()
    const seen: number[] = []
    const loop = async (): Promise<void> => {
      for (let i = 0; i < 3; i++) {
        await pause(clock, 10)
        await Promise.resolve()
        await Promise.resolve()
        seen.push(clock.now())
      }
    }
    const run = loop()
    await clock.advance(25)
    expect(seen).toEqual([10, 20])
    await clock.advance(5)
    await run
    expect(seen).toEqual([10, 20, 30])
  })

  test('cancels a timer, before it fires and after', async () => {
    const clock = fakeClock()
    let fired = 0
    const cancel = clock.setTimeout(() => fired++, 10)
    cancel()
    await clock.advance(20)
    cancel()
    expect(fired).toBe(0)
    expect(clock.pending).toBe(0)
  })

  test('never fires a timer of Infinity, nor one of 0 at once', async () => {
    const clock = fakeClock()
    let fired = 0
    clock.setTimeout(() => fired++, Infinity)
    clock.setTimeout(() => (fired += 10), 0)
    clock.setTimeout(() => (fired += 100), -5)
    expect(fired).toBe(0)
    await clock.advance(1_000_000)
    expect(fired).toBe(110)
  })

  test('runs until a promise has settled, and no further', async () => {
    const clock = fakeClock()
    clock.setTimeout(() => undefined, 3_600_000)
    await expect(clock.runUntil(pause(clock, 1_800_000).then(() => 'done'))).resolves.toBe('done')
    expect(clock.now()).toBe(1_800_000)
    const fails = pause(clock, 5).then(() => Promise.reject(new Error('as it is')))
    await expect(clock.runUntil(fails)).rejects.toThrow('as it is')
  })

  test('waits for real I/O when no timer is left', async () => {
    const clock = fakeClock()
    const text = await clock.runUntil(readFile(new URL(import.meta.url), 'utf8'))
    expect(text).toContain('fakeClock')
    expect(clock.now()).toBe(0)
  })

  test('waits for a file that takes thousands of turns', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'drainable-clock-')), 'pipe')
    execFileSync('mkfifo', [path])
    const text = fakeClock().runUntil(readFile(path, 'utf8')) // until it is written to
    for (let turn = 0; turn < 5_000; turn += 1) await nextTurn()
    await writeFile(path, 'at last')
    expect(await text).toBe('at last')
    rmSync(dirname(path), { recursive: true })
  })

  test('says so if nothing can settle the promise', async () => {
    const clock = fakeClock()
    const never = new Promise<void>(() => undefined)
    await expect(clock.runUntil(never)).rejects.toThrow(
      'no timer is left that could settle it; was `{ clock }` given to the call too?',
    )
    const poll = (): void => void clock.setTimeout(poll, 1_000)
    poll()
    await expect(clock.runUntil(never, 60_000)).rejects.toThrow('60000 ms')
  })
})

test('a fake clock stands still while a ticket is written to a file', async () => {
  await using folder = await temporaryFolder()
  const clock = fakeClock()
  const lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock })
  const web1 = { pool: 'web', member: 'web1' }
  clock.setTimeout(lb.occupy(web1), 3_600_000)
  const faults: string[] = []
  const onEvent = (event: DrainEvent): void => {
    if (event.type === 'fault') faults.push(event.error.message)
  }
  const tickets = fileTickets(folder.path)
  const options = { clock, tickets, id: 'job', timeout: '2h', pace: '1s', onEvent } as const
  const run = startDrain(lb, web1, options)
  const report = await clock.runUntil(run.done)
  await clock.runUntil(run.restore())
  expect([report.outcome, faults]).toEqual(['idle', []])
})
