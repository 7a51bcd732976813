import { expect } from 'vitest'

/** One test, as its file gave it. */
export interface SuiteTest {
  readonly name: string
  readonly run: () => unknown
}

/** What a test file imports from vitest, taken from here. */
export interface Suite {
  readonly tests: readonly SuiteTest[]
  readonly module: Record<string, unknown>
}

type Body = (...row: readonly unknown[]) => unknown

/** Collects the tests of a bundle instead of running them: one process then runs them for many mutants. */
export function createSuite(): Suite {
  const tests: SuiteTest[] = []
  let prefix = ''
  const describe = (name: string, body: () => void): void => {
    const outer = prefix
    prefix = `${prefix}${name} > `
    body()
    prefix = outer
  }
  const test = (name: string, run: () => unknown): void => {
    tests.push({ name: prefix + name, run })
  }
  const forEach =
    (make: (name: string, body: () => void) => void) =>
    (rows: readonly unknown[]) =>
    (name: string, body: Body) => {
      for (const row of rows) {
        const list: readonly unknown[] = Array.isArray(row) ? row : [row]
        make(`${name} (${String(list[0])})`, () => body(...list))
      }
    }
  const all = Object.assign(test, { each: forEach(test) })
  const groups = Object.assign(describe, { each: forEach(describe) })
  return { tests, module: { describe: groups, test: all, it: all, expect } }
}
