import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Io } from '../../../src/cli/io.js'
import type { Printer } from '../../../src/cli/printer/printer.js'
import { reporting } from '../../../src/cli/report/reporting.js'
import type { Result } from '../../../src/cli/result.js'
import { drainReport, goodDrain, memberReport } from './events.js'
import { textOf } from './pages.js'

const result: Result = {
  verb: 'drain',
  exitCode: 0,
  changed: true,
  report: drainReport(memberReport()),
}

describe('a command with a report', () => {
  let folder = ''
  let path = ''
  let told: string[] = []
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'reporting-'))
    path = join(folder, 'a.html')
    told = []
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const inner: Printer = {
    event: ({ type }) => told.push(type),
    say: (text) => told.push(text),
    pause: () => told.push('pause'),
    resume: () => told.push('resume'),
    end: ({ exitCode }) => told.push(`end ${exitCode}`),
  }
  const io: Io = {
    stdout: { write: () => true, isClosed: false, columns: undefined, rows: undefined },
    stderr: { write: () => true, isClosed: false, columns: undefined, rows: undefined },
    env: {},
    home: '/',
    onSignal: () => () => undefined,
    exitNow: (code) => told.push(`exit ${code}`),
  }
  const written = (): string => textOf(readFileSync(path, 'utf8'))

  it('prints as one without, and says at the end where the report is', () => {
    const { printer } = reporting(path, 'drain', { printer: inner, io })
    const events = goodDrain()
    for (const event of events) printer.event(event)
    printer.pause()
    printer.resume()
    printer.end(result)
    expect(told).toEqual([
      ...events.map(({ type }) => type),
      'pause',
      'resume',
      `the report is in ${path}`,
      'end 0',
    ])
    expect(written()).toContain('✓ idle, verified')
    expect(written()).toContain('COMMAND began')
  })

  it('writes what is known when a second signal ends it at once', () => {
    const { printer, io: own } = reporting(path, 'drain', { printer: inner, io })
    for (const event of goodDrain().slice(0, 4)) printer.event(event)
    own.exitNow(130)
    expect(told.at(-1)).toBe('exit 130')
    expect(written()).toContain('ended at once by a second signal')
  })

  it('ends as without, and says so, if the file can not be written at last', () => {
    const { printer } = reporting(path, 'drain', { printer: inner, io })
    rmSync(folder, { recursive: true })
    printer.end(result)
    expect(told).toEqual([expect.stringContaining('the report could not be written'), 'end 0'])
  })
})
