/** Runs the tests for one mutant after another, as it is told, and says what became of each. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Script } from 'node:vm'
import { createSuite, type SuiteTest } from './suite.ts'

/** What the parent asks for. */
export interface Task {
  /** Null: which mutants each test comes to, with none of them on. */
  readonly mutant: number | null
  /** Tests that come to the mutant; null: all of them, and what stands outside of tests is run anew. */
  readonly tests: readonly string[] | null
  /** The test that noticed it the last time. */
  readonly first: string | null
}

/** What is answered. */
export interface Answer {
  readonly mutant: number | null
  /** The test that failed; null: none did. */
  readonly failed: string | null
  /** Mutants that each test comes to, and those that are asked before any test runs. */
  readonly coverage?: {
    readonly tests: Readonly<Record<string, readonly number[]>>
    readonly before: readonly number[]
  }
}

const [, , bundle = ''] = process.argv
const script = new Script(
  `(function (__suite, __mutant, require) {${readFileSync(bundle, 'utf8')}\n})`,
  {
    filename: 'suite.js',
  },
)

type Load = (
  suite: Record<string, unknown>,
  mutant: (id: number) => boolean,
  require: NodeJS.Require,
) => void

function load(isOn: (id: number) => boolean): readonly SuiteTest[] {
  const suite = createSuite()
  const run = script.runInThisContext() as Load
  run(suite.module, isOn, createRequire(import.meta.url))
  return suite.tests
}

/** Loaded once, with the mutant that is on. */
let on: number | null = null
let loaded: readonly SuiteTest[] | null = null

async function failure(tests: readonly SuiteTest[]): Promise<string | null> {
  for (const { name, run } of tests) {
    try {
      await run()
    } catch {
      return name
    }
  }
  return null
}

async function cover(): Promise<Answer> {
  let hits = new Set<number>()
  const tests = load((id) => {
    hits.add(id)
    return false
  })
  const before = [...hits]
  const found: Record<string, readonly number[]> = {}
  for (const test of tests) {
    hits = new Set()
    if ((await failure([test])) !== null) return { mutant: null, failed: test.name }
    found[test.name] = [...hits]
  }
  return { mutant: null, failed: null, coverage: { tests: found, before } }
}

async function judge(mutant: number, names: Task['tests'], first: Task['first']): Promise<Answer> {
  try {
    if (names !== null) loaded ??= load((id) => id === on)
    const tests = names === null ? load((id) => id === mutant) : (loaded ?? [])
    const wanted = names === null ? null : new Set(names)
    const those = tests.filter(({ name }) => wanted?.has(name) ?? true)
    on = mutant
    const failed = await failure([
      ...those.filter(({ name }) => name === first),
      ...those.filter(({ name }) => name !== first),
    ])
    return { mutant, failed }
  } catch {
    return { mutant, failed: 'loading the tests' }
  } finally {
    on = null
  }
}

process.on('message', ({ mutant, tests, first }: Task) => {
  const answer = mutant === null ? cover() : judge(mutant, tests, first)
  void answer.then((news) => process.send?.(news))
})
