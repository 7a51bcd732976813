// Judges the demo by the last line of what it printed: a real HAProxy, enough traffic, no error, no server busy at a verdict.
//
//   node .ci/check-demo.mjs <file>
import { readFileSync } from 'node:fs'

const last = readFileSync(process.argv[2], 'utf8').trimEnd().split('\n').at(-1) ?? ''
const { engine, requests, errors, drains, backendCounts } = JSON.parse(last)
const wrong = []
if (engine !== 'haproxy') wrong.push(`the engine was ${engine}`)
if (!(requests >= 2000)) wrong.push(`${requests} requests are too few`)
if (errors !== 0) wrong.push(`${errors} requests failed`)
if (!(drains >= 3)) wrong.push(`${drains} servers were drained`)
if (backendCounts.length !== drains || backendCounts.some((count) => count !== 0)) {
  wrong.push(`the servers' own counts at the verdicts were ${backendCounts.join(', ')}`)
}
if (wrong.length > 0) console.error(`the demo does not show what it should: ${wrong.join('; ')}`)
process.exitCode = wrong.length > 0 ? 1 : 0
