/**
 * What a script waits for when it imports the package: the time of a whole process beside one that imports nothing, and
 * beside one that imports what the package is built on.
 *
 * `npm run build && npm run bench package/imports`
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'

const ROUNDS = 15
const dist = fileURLToPath(new URL('../../dist/', import.meta.url))
const own = ['index', 'haproxy-runtime', 'haproxy-dataplane', 'f5-bigip', 'citrix-adc', 'envoy']
const others = ['zod', 'undici']

if (!existsSync(`${dist}index.js`)) {
  console.error('there is no build to measure: run "npm run build" first')
  process.exit(2)
}

/** Milliseconds of a process that does this, from its start to its end. */
function once(code: string): number {
  const from = performance.now()
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: dist,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(stderr)
  return performance.now() - from
}

const programs = new Map([
  ['nothing', ''],
  ...own.map((name): [string, string] => [
    name === 'index' ? 'drainable' : `drainable/${name}`,
    `import ${JSON.stringify(pathToFileURL(`${dist}${name}.js`).href)}`,
  ]),
  ...others.map((name): [string, string] => [name, `import ${JSON.stringify(name)}`]),
])
const times = new Map([...programs.keys()].map((name): [string, number[]] => [name, []]))
for (let round = 0; round <= ROUNDS; round += 1) {
  for (const [name, code] of programs) {
    const took = once(code)
    // The first round fills the caches of the machine.
    if (round > 0) times.get(name)?.push(took)
  }
}

const median = (name: string): number => {
  const sorted = (times.get(name) ?? []).sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
const bare = median('nothing')
console.log(
  `Node ${process.versions.node}, importing nothing: ${bare.toFixed(0)} ms, median of ${ROUNDS}`,
)
for (const name of programs.keys()) {
  if (name === 'nothing') continue
  const more = median(name) - bare
  console.log(
    `${name.padEnd(28)} +${more.toFixed(0).padStart(4)} ms, ${(more / bare).toFixed(1)} times that`,
  )
}
