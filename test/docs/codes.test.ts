import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { codesOf, codesPage, codesPath } from '../../scripts/package/codes.ts'
import { root } from '../../scripts/package/entries.ts'

describe('the page of codes', () => {
  it('is what the source says: npm run docs writes it', () => {
    expect(readFileSync(join(root, codesPath), 'utf8')).toBe(codesPage())
  })

  it.each([
    ['src/provider/error.ts', 'ErrorCode'],
    ['src/provider/report.ts', 'WhyCode'],
  ])('%s says of each %s what happened and what to do', (path, union) => {
    const codes = codesOf(path, union)
    expect(codes.length).toBeGreaterThan(10)
    for (const { code, cause, remedy } of codes) {
      expect(code).not.toBe('')
      expect(cause, code).toMatch(/^[A-Z].*\.$/)
      expect(remedy, code).toMatch(/\.$/)
    }
  })
})
