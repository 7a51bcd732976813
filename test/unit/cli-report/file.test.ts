import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ReportFile } from '../../../src/cli/report/file.js'

describe('the file of a report', () => {
  let folder = ''
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'report-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('is as it was until it is written, then whole, and nothing else is left', () => {
    const path = join(folder, 'a.html')
    writeFileSync(path, 'old')
    const file = new ReportFile(path)
    expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual(['old', ['a.html']])
    file.write('new')
    expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual(['new', ['a.html']])
  })

  it('is written through a link', () => {
    const [path, link] = [join(folder, 'a.html'), join(folder, 'link.html')]
    writeFileSync(path, 'old')
    symlinkSync(path, link)
    new ReportFile(link).write('new')
    expect(readFileSync(path, 'utf8')).toBe('new')
  })

  it.each([
    ['an empty name', () => '', 'the name is empty'],
    ['the name of another format', () => join(folder, 'a.pdf'), 'let its name end in .html'],
    ['a folder that is missing', () => join(folder, 'no', 'a.html'), 'its folder does not exist'],
    ['a folder', () => folder, 'is no regular file'],
    ['a device', () => '/dev/null', 'is no regular file'],
    ['a folder that is a file', () => join(import.meta.filename, 'a.html'), 'ENOTDIR'],
  ])('refuses %s before anything is changed', (_, name, why) => {
    const open = () => new ReportFile(name())
    expect(open).toThrow(expect.objectContaining({ code: 'INVALID_OPTIONS' }))
    expect(open).toThrow(why)
    expect(open).toThrow('nothing was changed')
  })
})
