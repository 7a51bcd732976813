// Adds up the results of every vitest run and prints the closing line. Status 1 when anything failed, or nothing ran.
//
//   node .ci/count.mjs <folder with the lists of results> <parts that failed>
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const [folder, failedParts] = [process.argv[2], Number(process.argv[3])]
let passed = 0
let failed = 0
const skipped = []
const seconds = new Map()
for (const name of readdirSync(folder).filter((file) => file.endsWith('.json'))) {
  const result = JSON.parse(readFileSync(join(folder, name), 'utf8'))
  passed += result.numPassedTests
  failed += result.numFailedTests
  for (const file of result.testResults) {
    const path = file.name.replace(`${process.cwd()}/`, '')
    const kind = path
      .split('/')
      .slice(0, /^test\/engine/.test(path) ? 3 : 2)
      .join('/')
    seconds.set(kind, (seconds.get(kind) ?? 0) + (file.endTime - file.startTime) / 1000)
    // A file that could not even be loaded has no tests to count.
    if (file.status === 'failed' && file.assertionResults.length === 0) failed += 1
    const left = file.assertionResults.filter(
      (test) => test.status !== 'passed' && test.status !== 'failed',
    )
    if (left.length > 0) skipped.push(`${String(left.length).padStart(6)}  ${path}`)
  }
}
console.log('\nseconds per kind of test, files that ran side by side added up')
for (const [kind, sum] of [...seconds].sort())
  console.log(`${sum.toFixed(0).padStart(6)} s  ${kind}`)
if (skipped.length > 0) console.log(`\nskipped, by file:\n${skipped.join('\n')}`)
// Lint, types, build and the like are no tests; one that failed counts as one failure.
failed = Math.max(failed, failedParts)
console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 || passed === 0 ? 1 : 0
