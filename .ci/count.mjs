// Adds up the results of every vitest run and prints the closing line. Status 1 when anything failed, or nothing ran.
//
//   node .ci/count.mjs <folder with the lists of results> <parts that failed>
//
// A test that ran with other engines in another run is one test: passed if it passed anywhere and failed nowhere.
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Only the end of a long output may be kept: what failed is said there once more, in a few lines each. */
const LINES = 30

const isFailed = ({ status }) => status === 'failed'

function told(list, name, messages) {
  const lines = messages.join('\n').trimEnd().split('\n')
  const ours = lines
    .filter((line) => !/^\s+at .*node_modules|<anonymous>/.test(line))
    .slice(0, LINES)
  return [`${list.replace(/^\d+-|\.json$/g, '')}: ${name}`, ...ours].join('\n    ')
}

const [folder, failedParts] = [process.argv[2], Number(process.argv[3])]
const outcomes = new Map()
const seconds = new Map()
const skipped = []
const again = []
const broken = []
const lists = readdirSync(folder).filter((file) => file.endsWith('.json'))
for (const list of lists.sort()) {
  const left = []
  for (const file of JSON.parse(readFileSync(join(folder, list), 'utf8')).testResults) {
    // From the folder of the repository or of its clone.
    const path = file.name.slice(file.name.lastIndexOf('/test/') + 1)
    const kind = path
      .split('/')
      .slice(0, /^test\/engine/.test(path) ? 3 : 2)
      .join('/')
    seconds.set(kind, (seconds.get(kind) ?? 0) + (file.endTime - file.startTime) / 1000)
    // It could not even be loaded, or a hook of it failed.
    if (file.status === 'failed' && !file.assertionResults.some(isFailed)) {
      outcomes.set(path, 'failed')
      broken.push(told(list, path, [file.message ?? 'it was not loaded']))
    }
    const times = new Map()
    let skips = 0
    for (const { fullName, status, meta, failureMessages } of file.assertionResults) {
      if (status === 'failed') broken.push(told(list, `${path} ${fullName}`, failureMessages))
      const still = meta?.stoodStill
      if (still !== undefined)
        again.push(`${String(still).padStart(6)} s  ${path} ${fullName}: ${status}`)
      // Two tests of one file may have the same name.
      const time = (times.get(fullName) ?? 0) + 1
      times.set(fullName, time)
      if (status !== 'passed' && status !== 'failed') skips += 1
      else {
        const test = `${path} ${fullName} ${time}`
        if (outcomes.get(test) !== 'failed') outcomes.set(test, status)
      }
    }
    if (skips > 0) left.push(`${String(skips).padStart(6)}  ${path}`)
  }
  if (left.length > 0) skipped.push(`${list.replace(/^\d+-|\.json$/g, '')}\n${left.join('\n')}`)
}
console.log('\nseconds per kind of test, all runs and files that ran side by side added up')
for (const [kind, sum] of [...seconds].sort())
  console.log(`${sum.toFixed(0).padStart(6)} s  ${kind}`)
if (skipped.length > 0) console.log(`\nskipped, by run and file:\n${skipped.join('\n')}`)
if (again.length > 0)
  console.log(`\nran a second time, as the machine stood still for so long:\n${again.join('\n')}`)
if (broken.length > 0) console.log(`\nfailed, by run:\n${broken.join('\n')}`)
for (const said of readdirSync(folder).filter((file) => file.endsWith('.txt'))) {
  const text = readFileSync(join(folder, said), 'utf8')
  const at = text.search(/^.*Unhandled (Errors?|Rejection)/m)
  if (at >= 0) console.log(`\n${told(said, 'outside of all tests', [text.slice(at)])}`)
}
if (broken.length === 0 && failedParts > 0)
  console.log('\nno test failed, see the parts that FAILED')
const count = (status) => [...outcomes.values()].filter((outcome) => outcome === status).length
const passed = count('passed')
// Lint, types, build and the like are no tests; one that failed counts as one failure.
const failed = Math.max(count('failed'), failedParts)
console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 || passed === 0 ? 1 : 0
