/**
 * `npm test`: every project but those that have commands of their own.
 *
 * Real engines and fakes on sockets mostly wait; the other tests only compute. So they run side by side in processes of vitest of
 * their own, and what computes gives way. What it prints is shown when all have ended, and the last line counts the tests of both.
 *
 * With arguments it is one run of vitest: `npm test -- test/unit/endpoints`, `npm test -- --project contract`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { constants, setPriority, tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { kinds, readEngines } from './engines/manifest.ts'

/** With engines their tests take as long as all others together, and without any they have nothing to do. */
const hasEngines = kinds.some((kind) => readEngines(kind).length > 0)
const WAITING = hasEngines ? ['engine'] : ['contract', 'engine']
const COMPUTING = [...(hasEngines ? ['contract'] : []), 'unit', 'histories', 'docs']

/** A third of a core against a process of usual priority: the real deadlines of the others hold, and this goes on. */
const GIVES_WAY = 5

const root = fileURLToPath(new URL('../', import.meta.url))
const vitest = join(root, 'node_modules/vitest/vitest.mjs')

interface Run {
  readonly status: number
  /** What it printed, when it was kept back. */
  readonly output: Buffer
}

async function run(args: readonly string[], kept: boolean, env = process.env): Promise<Run> {
  const stdio = kept ? ('pipe' as const) : ('inherit' as const)
  const child = spawn(process.execPath, [vitest, 'run', ...args], {
    cwd: root,
    stdio: ['inherit', stdio, stdio],
    env,
  })
  const stop = (signal: NodeJS.Signals): void => {
    child.kill(signal)
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, stop)
  if (kept && child.pid !== undefined) setPriority(child.pid, GIVES_WAY)
  const said: Buffer[] = []
  child.stdout?.on('data', (chunk: Buffer) => said.push(chunk))
  child.stderr?.on('data', (chunk: Buffer) => said.push(chunk))
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  for (const each of signals) process.off(each, stop)
  return {
    status: signal === null ? (code ?? 1) : 128 + constants.signals[signal],
    output: Buffer.concat(said),
  }
}

const projects = (names: readonly string[]): string[] =>
  names.flatMap((name) => ['--project', name])

interface Results {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly message?: string
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
  }[]
}

interface Count {
  readonly passed: number
  readonly failed: number
  /** Files and titles of the tests that failed. */
  readonly names: readonly string[]
}

/** A file whose hook failed, or that was not loaded, counts as one failed test; so does a run that failed without any. */
function count(file: string, { status }: Run): Count {
  let results: Results
  try {
    results = JSON.parse(readFileSync(file, 'utf8')) as Results
  } catch {
    return { passed: 0, failed: 1, names: [] }
  }
  const broken = results.testResults.filter(
    (each) =>
      each.status === 'failed' && each.assertionResults.every((test) => test.status !== 'failed'),
  )
  const failed = results.numFailedTests + broken.length
  const names = results.testResults.flatMap((each) => {
    const path = relative(root, each.name)
    const tests = each.assertionResults.filter((test) => test.status === 'failed')
    return broken.includes(each)
      ? [`${path}: ${each.message ?? ''}`]
      : tests.map((test) => `${path}: ${test.fullName}`)
  })
  const unnamed = status !== 0 && names.length === 0
  return {
    passed: results.numPassedTests,
    failed: unnamed ? 1 : failed,
    names: unnamed ? ['an error outside of all tests, see above'] : names,
  }
}

async function sideBySide(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'drainable-test-'))
  try {
    // `.ci/run` reads every list of results of a folder.
    const given = process.env['DRAINABLE_TEST_RESULTS'] ?? join(folder, 'waiting.json')
    const start = async (names: readonly string[], kept: boolean) => {
      const results = kept ? given.replace(/(\.json)?$/, `-${names[0]}.json`) : given
      const env = { ...process.env, DRAINABLE_TEST_RESULTS: results }
      const ended = await run(projects(names), kept, env)
      return { names, ended, count: count(results, ended) }
    }
    console.log(`beside these tests, and printed after them: ${COMPUTING.join(', ')}`)
    const runs = await Promise.all([start(WAITING, false), start(COMPUTING, true)])
    for (const { names, ended } of runs.slice(1)) {
      process.stdout.write(`\n${names.join(', ')}:\n`)
      process.stdout.write(ended.output)
    }
    const passed = runs.reduce((sum, { count }) => sum + count.passed, 0)
    const failed = runs.reduce((sum, { count }) => sum + count.failed, 0)
    const names = runs.flatMap(({ count }) => count.names)
    if (names.length > 0) console.log(`failed:\n  ${names.join('\n  ')}`)
    console.log(`${passed} passed, ${failed} failed`)
    return failed > 0 ? Math.max(1, ...runs.map(({ ended }) => ended.status)) : 0
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const args = process.argv.slice(2)
const chosen = args.some((each) => /^--project\b/.test(each))
if (args.length === 0) process.exitCode = await sideBySide()
else {
  const all = chosen ? [] : projects([...WAITING, ...COMPUTING])
  process.exitCode = (await run([...all, ...args], false)).status
}
