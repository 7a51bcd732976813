import { expect, vi } from 'vitest'

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
type Hook = () => unknown

/** Collects the tests of a bundle instead of running them: one process then runs them for many mutants. */
export function createSuite(): Suite {
  const tests: SuiteTest[] = []
  let prefix = ''
  /** Hooks of each group that is being read, the outer ones first. Those outside of a group are for the whole bundle. */
  let groups: readonly { readonly before: Hook[]; readonly after: Hook[] }[] = [
    { before: [], after: [] },
  ]
  const describe = (name: string, body: () => void): void => {
    const outer = { prefix, groups }
    prefix = `${prefix}${name} > `
    groups = [...groups, { before: [], after: [] }]
    body()
    ;({ prefix, groups } = outer)
  }
  const test = (name: string, body: () => unknown): void => {
    const around = groups
    const run = async (): Promise<void> => {
      try {
        for (const { before } of around) for (const hook of before) await hook()
        await body()
      } finally {
        for (const { after } of around.toReversed()) for (const hook of after) await hook()
      }
    }
    tests.push({ name: prefix + name, run })
  }
  const forEach =
    (make: (name: string, body: () => void) => void) =>
    (rows: readonly unknown[]) =>
    (name: string, body: Body) => {
      for (const [index, row] of rows.entries()) {
        const list: readonly unknown[] = Array.isArray(row) ? row : [row]
        make(`${name} (${index}: ${String(list[0])})`, () => body(...list))
      }
    }
  const all = Object.assign(test, { each: forEach(test) })
  const nested = Object.assign(describe, { each: forEach(describe) })
  const beforeEach = (hook: Hook): unknown => groups.at(-1)?.before.push(hook)
  const afterEach = (hook: Hook): unknown => groups.at(-1)?.after.push(hook)
  return {
    tests,
    module: { describe: nested, test: all, it: all, expect, vi, beforeEach, afterEach },
  }
}
