/**
 * What a script pays when it imports the package: the CPU time of a whole process beside one that imports nothing, and
 * beside one that imports what the package is built on. The least of several, because a busy machine only adds.
 *
 * An entry over its budget, a ratio to the bare process, ends it with status 1; CI runs it.
 *
 * `npm run build && npm run bench package/imports`
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { keep } from '../support/tables.ts'
import { output, present, type Entry } from '../../scripts/package/entries.ts'

const ROUNDS = 15
const dist = fileURLToPath(new URL('../../dist/', import.meta.url))
/** Times of a process that imports nothing, by what an entry is built on. */
const budgets: Readonly<Record<string, number>> = Object.fromEntries(
  present
    .filter((item) => !item.name.startsWith('testing') && !item.externals.includes('@grpc/grpc-js'))
    .map((item) => [output(item), budgetOf(item)]),
)

function budgetOf({ externals, kilobytes }: Entry): number {
  if (externals.includes('undici')) return 7
  return kilobytes > 500 ? 5 : 2.5
}

const others = ['zod/mini', 'undici']

if (!existsSync(`${dist}index.js`)) {
  console.error('there is no build to measure: run "npm run build" first')
  process.exit(2)
}

const SAY =
  '; const { user, system } = process.cpuUsage(); process.stdout.write(String(user + system))'

/** Milliseconds of CPU of a process that does this. */
function once(code: string): number {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '-e', code + SAY],
    { cwd: dist, encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(stderr)
  return Number(stdout) / 1000
}

const programs = new Map([
  ['nothing', ''],
  ...Object.keys(budgets).map((name): [string, string] => [
    name,
    `import ${JSON.stringify(pathToFileURL(`${dist}${name}.js`).href)}`,
  ]),
  ...others.map((name): [string, string] => [name, `import ${JSON.stringify(name)}`]),
])
const least = new Map<string, number>()
for (let round = 0; round < ROUNDS; round += 1) {
  for (const [name, code] of programs)
    least.set(name, Math.min(least.get(name) ?? Infinity, once(code)))
}

const bare = least.get('nothing') ?? Number.NaN
console.log(
  `Node ${process.versions.node}, importing nothing: ${bare.toFixed(0)} ms of CPU, the least of ${ROUNDS}`,
)
for (const [name, took] of least) {
  if (name === 'nothing') continue
  const shown = name === 'index' ? 'drainable' : name in budgets ? `drainable/${name}` : name
  const ratio = took / bare
  const budget = budgets[name]
  const over = budget !== undefined && ratio > budget
  if (over) process.exitCode = 1
  console.log(
    `${shown.padEnd(28)} +${(took - bare).toFixed(0).padStart(4)} ms, ${ratio.toFixed(1)} times that` +
      (budget === undefined ? '' : `, at most ${budget}${over ? ': OVER ITS BUDGET' : ''}`),
  )
}
keep({
  id: 'imports',
  title: 'What an import costs',
  about: `CPU of a whole process on Node ${process.versions.node} beyond one that imports nothing (${bare.toFixed(0)} ms); the least of ${ROUNDS}.`,
  columns: ['import', 'ms of CPU'],
  rows: [...least].flatMap(([name, took]) =>
    name === 'nothing'
      ? []
      : [
          [
            name in budgets ? `drainable/${name}`.replace(/\/index$/, '') : name,
            Math.round(took - bare),
          ],
        ],
  ),
  notShown:
    'The first call, which loads what only a call needs: an HTTP client, for most adapters.',
})
