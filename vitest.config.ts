import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { kinds, readEngines } from './scripts/engines/manifest.ts'

/** Tests import the package by its public names; the names resolve to the sources by the paths of tsconfig.json. */
const { compilerOptions } = JSON.parse(
  readFileSync(new URL('./tsconfig.json', import.meta.url), 'utf8'),
) as {
  compilerOptions: { paths: Record<string, [string]> }
}
const alias = Object.entries(compilerOptions.paths).map(([name, [path]]) => ({
  find: new RegExp(`^${name}$`),
  replacement: new URL(path, import.meta.url).pathname,
}))

const isCi = process.env['CI'] !== undefined

/** In CI all cases are played, and give way to what waits for real engines: the limit only ends what hangs. */
const UNIT_TIMEOUT = isCi ? 240_000 : 60_000

const STANDSTILL = 'test/support/standstill.ts'

/** A process of its own for each file would cost as much as its tests: `left-over.ts` keeps them apart. */
const TOGETHER = { isolate: false, setupFiles: [STANDSTILL, 'test/support/left-over.ts'] }

/**
 * One project a kind of test, so that each can be run alone: `vitest run --project unit`. Groups run one after the other:
 * what runs beside real engines must leave them a core.
 */
function project(name: string, timeout: number, group: number, extra: object = {}) {
  return {
    extends: true as const,
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`],
      testTimeout: timeout,
      hookTimeout: timeout,
      // For a loaded machine: what is polled for is there within milliseconds.
      expect: { poll: { timeout: 15_000, interval: 10 } },
      sequence: { groupOrder: group },
      setupFiles: [STANDSTILL],
      retry: { count: 1, condition: /the machine stood still/ },
      ...extra,
    },
  }
}

/** What computes most of the time also waits for fakes: with a process for a core a third of the machine stood idle. */
const COMPUTES = { maxWorkers: availableParallelism() + (isCi ? 1 : 3) }

/** What talks to a fake over a socket waits more than it works. */
const WAITS = { maxWorkers: availableParallelism() + 3, maxConcurrency: 10 }

/**
 * The engines are processes too, and do by themselves what a test that comes late has missed. Their tests mostly wait: a third
 * worker costs no more than a second one.
 */
const BESIDE_ENGINES = { ...TOGETHER, maxWorkers: 3 }

/** Without any the engine tests have little more to do than to say so. */
const hasEngines = kinds.some((kind) => readEngines(kind).length > 0)

/** `.ci/run` counts the results of every run, also of a command that it runs as the README has it. */
const results = process.env['DRAINABLE_TEST_RESULTS']
const counted =
  results === undefined
    ? {}
    : { reporters: ['default', 'json'], outputFile: { json: results }, allowOnly: false }

export default defineConfig({
  resolve: { alias },
  test: {
    pool: 'forks',
    ...counted,
    projects: [
      project('unit', UNIT_TIMEOUT, 0, { ...TOGETHER, ...COMPUTES, maxConcurrency: 10 }),
      project('contract', UNIT_TIMEOUT, 1, { ...TOGETHER, ...WAITS }),
      hasEngines
        ? project('engine', 120_000, 2, BESIDE_ENGINES)
        : project('engine', 120_000, 1, { ...TOGETHER, ...WAITS }),
      project('clients', 120_000, 3, { fileParallelism: false }),
      project('histories', UNIT_TIMEOUT, 0, { ...TOGETHER, ...COMPUTES }),
      project('docs', 120_000, 0, COMPUTES),
      project('package', 300_000, 4, { fileParallelism: false }),
    ],
  },
})
