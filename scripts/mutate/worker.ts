/** Runs the tests for one mutant after another, as it is told, and says what became of each. */
import { readFileSync } from 'node:fs'
import { Script } from 'node:vm'
import { createSuite, type SuiteTest } from './suite.ts'

/** What the parent asks for. Null: which mutants each test comes to, with none of them on. */
export interface Task {
  readonly mutant: number | null
  /** Tests that come to the mutant; null: all of them. */
  readonly tests: readonly string[] | null
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
const script = new Script(`(function (__suite, __mutant) {${readFileSync(bundle, 'utf8')}\n})`, {
  filename: 'suite.js',
})

type Load = (suite: Record<string, unknown>, mutant: (id: number) => boolean) => void

function load(isOn: (id: number) => boolean): readonly SuiteTest[] {
  const suite = createSuite()
  const run = script.runInThisContext() as Load
  run(suite.module, isOn)
  return suite.tests
}

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

async function judge(mutant: number, names: readonly string[] | null): Promise<Answer> {
  try {
    const tests = load((id) => id === mutant)
    const wanted = names === null ? null : new Set(names)
    const failed = await failure(tests.filter(({ name }) => wanted?.has(name) ?? true))
    return { mutant, failed }
  } catch {
    return { mutant, failed: 'loading the tests' }
  }
}

process.on('message', (task: Task) => {
  const answer = task.mutant === null ? cover() : judge(task.mutant, task.tests)
  void answer.then((news) => process.send?.(news))
})
