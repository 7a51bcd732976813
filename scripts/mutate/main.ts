/**
 * Changes src/core/member in one small place after the other, and asks its tests, those of calls by public names, and then
 * the histories, whether they notice: a rule that can be deleted unnoticed is a rule without a test.
 *
 *     npm run mutate [-- --only open] [--again] [--jobs 2] [--write] [--histories] [--sample 10]
 *
 * All mutants are in one bundle, each behind a switch; a child process runs the tests that come to it,
 * the one that noticed it the last time first. `--again` runs those only that survived then.
 * Survivors that change nothing are explained in survivors.json; ends with 1 where one is not. `--write`
 * puts those of a whole run into it, with nothing said yet, and takes those out that survive no more.
 *
 * `--histories` asks test/histories instead, and prints what these alone do not notice. `--sample 10` takes every tenth
 * mutant, and `--least 97` asks that so many of a hundred are noticed or explained, not all.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, sep } from 'node:path'
import { parseArgs } from 'node:util'
import { bundle } from './bundle.ts'
import type { Mutant } from './mutants.ts'
import { Pool } from './pool.ts'
import { Memory } from './memory.ts'
import { explainSurvivors, keyOf, update, type Explanation } from './survivors.ts'

const root = join(import.meta.dirname, '..', '..')
const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    again: { type: 'boolean', default: false },
    jobs: { type: 'string', default: '2' },
    write: { type: 'boolean', default: false },
    histories: { type: 'boolean', default: false },
    sample: { type: 'string', default: '1' },
    least: { type: 'string', default: '100' },
  },
})

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

function filesUnder(folder: string, suffix: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(suffix))
    .map((name) => join(folder, name).split(sep).join('/'))
    .sort()
}

/** The search and what it stands on are left out: they take their time, and judge all rules at once. */
function testsIn(folder: string): string[] {
  return filesUnder(folder, '.test.ts').filter((file) => !file.includes('search'))
}

/** Processes that run the tests of a bundle; histories play whole calls, so one that never ends is seen later. */
function openPool(bundled: string, histories: boolean): Pool {
  const endless = histories ? 120_000 : 10_000
  return new Pool(join(import.meta.dirname, 'worker.ts'), bundled, Number(values.jobs), endless)
}

function inWords({ file, line, from, to }: Mutant): string {
  const what = to === '' ? 'left out' : `-> ${to}`
  return `${relative('src/core/member', file)}:${line}  ${from.slice(0, 90)}  ${what.slice(0, 90)}`
}

/** What a file needs that one process can't give it for thousands of runs: a runner's own clock, a process, much time. */
const NEEDS_A_RUNNER =
  /vi\.(?!spyOn|fn|restoreAllMocks)|uncaughtException|expect\.poll|beforeAll|afterAll|node:child_process|fast-check|\.for\(|\.concurrent|skipIf|onTestFinished|timeout: \d+_000 \}|support\/cases/

/** Tests by the public names: they hold the rules of a record that a caller meets. */
function testsByPublicNames(): string[] {
  const files = [
    'core/carry',
    'core/contest',
    'core/endings',
    'core/floor',
    'core/holds',
    'core/idle',
    'core/readings',
    'core/ready',
    'core/steps',
    'core/tickets',
    'core/undo',
    'combined',
    'plan',
    'reconcile',
    'roll',
    'tickets',
  ].flatMap((folder) => testsIn(`test/unit/${folder}`))
  return files.filter((file) => !NEEDS_A_RUNNER.test(readFileSync(join(root, file), 'utf8')))
}

const startedAt = performance.now()
const folder = mkdtempSync(join(tmpdir(), 'drainable-mutate-'))
try {
  const sources = filesUnder('src/core/member', '.ts')
  const tests = values.histories
    ? testsIn('test/histories')
    : [...testsIn('test/unit/core/member'), ...testsByPublicNames()]
  const { path, mutants } = await bundle(root, sources, tests, folder)
  const kept = values.histories ? 'mutants-histories.json' : 'mutants.json'
  const memory = new Memory(join(root, 'node_modules', '.cache', kept))
  const wanted = mutants
    .filter(
      (mutant) => mutant.file.includes(values.only) && !(values.again && memory.isKilled(mutant)),
    )
    .filter((_, index) => index % Number(values.sample) === 0)
  const whole = wanted.length === mutants.length
  say(`${wanted.length} mutants in ${sources.length} files, ${tests.length} files of tests`)
  const pool = openPool(path, values.histories)
  const killers = new Map(
    await pool.run(
      wanted,
      (mutant) => memory.killerOf(mutant),
      (done) => {
        if (done % 200 === 0) say(`${done} of ${wanted.length}`)
      },
    ),
  )
  const list = join(import.meta.dirname, 'survivors.json')
  const known = JSON.parse(readFileSync(list, 'utf8')) as readonly Explanation[]
  const ofThese = (one: Mutant): boolean => killers.get(one) === null
  // What the tests of the room let through and nobody has explained is asked of the histories: they take longer.
  const open = explainSurvivors(wanted.filter(ofThese), known, () => false).unexplained
  if (!values.histories && open.length > 0) {
    say(`the histories are asked about ${open.length}`)
    const kinds = new Set(open.map(keyOf))
    const second = await bundle(root, sources, testsIn('test/histories'), folder)
    const left = second.mutants.filter((mutant) => kinds.has(keyOf(mutant)))
    const ids = new Map(wanted.map((mutant) => [mutant.id, mutant]))
    for (const [mutant, killer] of await openPool(second.path, true).run(
      left,
      () => null,
      () => undefined,
    ))
      if (killer !== null) killers.set(ids.get(mutant.id) ?? mutant, killer)
  }
  memory.keep(killers)
  const survivors = wanted.filter(ofThese)
  if (values.write && whole)
    writeFileSync(list, `${JSON.stringify(update(survivors, known), null, 2)}\n`)
  const ran = new Set(wanted.map(keyOf))
  const judged = explainSurvivors(survivors, known, (key) => whole || ran.has(key))
  const { unexplained, explained, stale } = judged
  for (const mutant of unexplained) say(`survived  ${inWords(mutant)}`)
  for (const { file, from, to } of stale) say(`no survivor any more  ${file}  ${from} -> ${to}`)
  const killed = wanted.length - survivors.length
  const took = Math.round((performance.now() - startedAt) / 1_000)
  say(
    `${killed} of ${wanted.length} killed in ${took} s; ${explained.length} survivors explained, ${unexplained.length} not`,
  )
  const share = (100 * (wanted.length - unexplained.length)) / wanted.length
  if (share < Number(values.least)) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
