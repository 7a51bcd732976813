import { describe, expect, test } from 'vitest'
import {
  isSuccessorOf,
  startedAlone,
} from '../../../src/adapters/haproxy-runtime/session/started-alone.js'

const BOOT = 1_700_000_000
/** It began 500 s after the machine, in ticks of a hundredth of a second. */
const START = BOOT + 500
const PID = 4_711

/** What `/proc` says of one process; 19 fields stand between its state and its start. */
function proc({ name = 'haproxy', args = ['-f', 'haproxy.cfg'], ticks = 50_000 } = {}) {
  const between = Array.from({ length: 18 }, () => '0').join(' ')
  const files: Readonly<Record<string, string>> = {
    [`/proc/${PID}/stat`]: `${PID} (${name}) S ${between} ${ticks} 0 0`,
    [`/proc/${PID}/cmdline`]: ['/usr/sbin/haproxy', ...args, ''].join('\0'),
    '/proc/stat': `cpu 1 2 3\nbtime ${BOOT}\nprocesses 9`,
  }
  return (path: string): Promise<string> => {
    const text = files[path]
    return text === undefined ? Promise.reject(new Error('ENOENT')) : Promise.resolve(text)
  }
}

const info = (start: number | '' = START, pid = PID) => ({ pid, start: String(start) })

describe('a process that was started alone', () => {
  test('is recognised by its name, its start and its arguments', async () => {
    expect(await startedAlone(info(), proc())).toBe(true)
    expect(await startedAlone(info(), proc({ name: 'haproxy-3.2 (lts)' }))).toBe(true)
  })

  test.each(['-sf', '-st', '-x'])('is not recognised with %s among its arguments', async (word) => {
    expect(await startedAlone(info(), proc({ args: ['-f', 'a', word, '12'] }))).toBe(false)
  })

  test('may name a file that looks like such an argument', async () => {
    expect(await startedAlone(info(), proc({ args: ['-f', '/etc/-sf.cfg'] }))).toBe(true)
  })

  test('is not recognised under another name', async () => {
    expect(await startedAlone(info(), proc({ name: 'nginx' }))).toBe(false)
  })

  test('is not recognised if another haproxy has that pid here', async () => {
    expect(await startedAlone(info(START - 3_600), proc())).toBe(false)
    expect(await startedAlone(info(START + 3), proc())).toBe(false)
  })

  test('may differ by two seconds of start, because clocks round', async () => {
    for (const off of [-2, 2]) expect(await startedAlone(info(START + off), proc())).toBe(true)
  })

  test('is unknown if HAProxy does not say when it began', async () => {
    expect(await startedAlone(info(''), proc())).toBe(false)
  })

  test('is unknown without a readable /proc', async () => {
    expect(await startedAlone(info(START, 1), proc())).toBe(false)
    expect(await startedAlone(info(), () => Promise.resolve(''))).toBe(false)
  })
})

describe('a process that was started to replace another one', () => {
  const over = (...args: string[]) => proc({ args: ['-f', 'a', ...args] })

  test.each([
    [['-sf', '12'], true],
    [['-x', '/run/s', '-st', '12', '-D'], true],
    [['-sf', '12', '13'], false],
    [['-sf', '13'], false],
    [['-sf'], false],
    [['-x', '12'], false],
    [[], false],
  ])('has no other such argument: %j', async (args, known) => {
    expect(await isSuccessorOf(info(), 12, over(...args))).toBe(known)
  })

  test('is unknown if /proc shows another one', async () => {
    const other = proc({ name: 'nginx', args: ['-sf', '12'] })
    expect(await isSuccessorOf(info(), 12, other)).toBe(false)
  })
})
