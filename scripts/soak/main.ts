/**
 * What CI does in small, in large.
 *
 *     npm run soak -- model [--runs 100000] [--seed 1] [--trace]
 *     npm run soak -- rolls [--runs 1000] [--seed 1]
 *     npm run soak -- combined [--runs 1000] [--seed 1] [--trace] [--only smallest]
 *     npm run soak -- reconcile [--runs 1000] [--seed 1] [--only 'under a lease']
 *     npm run soak -- leases [--runs 2000] [--seed 1]
 *     npm run soak -- devices [--runs 300] [--seed 1] [--only citrix-adc]
 *     npm run soak -- kills [--only group]
 *     npm run soak -- heap [--runs 100000]
 *     npm run soak -- haproxy [--runs 1000] [--seed 1] [--only roll]
 *     npm run soak -- envoy [--runs 1000] [--seed 1]
 *     npm run soak -- envoy-shapes [--runs 1000] [--seed 1]
 *     npm run soak -- envoy-fleet [--only rest] [--runs 200]
 *     npm run soak -- envoy-crowd
 *     npm run soak -- kube [--only "envoy: flap"]
 *
 * `model` plays scenarios (`test/model`) over the public verbs; one seed is one story. It prints progress,
 * the seeds that failed, and what was reached. `rolls` does the same with rolls over two balancers, and
 * `reconcile` with controllers in a random world: one process, two under a lease and two without in turn. `leases`
 * lets contenders freeze, drift and lose calls, and says who acted after another one had got the lease. `devices` plays drains, operators and
 * lost requests on the fakes of BIG-IP, Citrix ADC and the Data Plane API, and tells the stories that fail. `kills` ends a process at every point at which it
 * touches the world, and goes on from its ticket. `heap` looks so often, and says by how much the heap has
 * grown. `haproxy` and `envoy` drain servers of every installed version at random, and judge by what its backends know;
 * `haproxy` also reloads fifty times in one drain, pauses HAProxy at every moment of a retry, and rolls over three servers for two minutes with a reload every 5 s.
 * `envoy-shapes` drains members of clusters of any shape (priorities, localities, subsets, panic) in the same way.
 * `envoy-fleet` kills the controller of three Envoys at every point, `--runs` times by each sink, and goes on from its ticket. `envoy-crowd` drains
 * over thirty Envoys at once. `kube` plays what happens in clusters between a real API server and HAProxy or Envoy, with the
 * controller of the examples and with a plain loop beside it, and counts the requests that fail. All end with 1 where anything failed.
 */
import { parseArgs } from 'node:util'
import { Figures } from '../../test/model/figures.ts'
import { drainAtRandom as onEnvoy } from '../../test/support/envoy/random.ts'
import { drainShapes } from '../../test/support/envoy/random-shapes.ts'
import { play, type Story } from '../../test/model/scenario.ts'
import { combineAtRandom, shrinkCombined } from './combined.ts'
import { devicesAtRandom } from './devices.ts'
import { drainCrowds } from './envoy-crowd.ts'
import { killFleet } from './envoy-fleet.ts'
import { soakHaproxy } from './haproxy.ts'
import { drainAll } from './random-drains.ts'
import { heapStaysFlat } from './heap.ts'
import { killAll } from './kills.ts'
import { soakKube } from './kube.ts'
import { reconcileAtRandom } from './reconcile.ts'
import { leasesAtRandom } from './leases.ts'
import { rollAtRandom } from './rolls.ts'

const PROGRESS = 10_000
const MOST_SHOWN = 200

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string' },
    seed: { type: 'string', default: '1' },
    trace: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  },
})

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

function showFailure({ seed, faults }: Story): void {
  say(`seed ${seed}`)
  for (const { rule, text, at } of faults) say(`  at ${Math.round(at)}: ${rule}: ${text}`)
}

async function soak(first: number, runs: number, trace: boolean): Promise<void> {
  // Thousands of errors a second are made up here, and their stacks are not read.
  if (!trace) Error.stackTraceLimit = 0
  const figures = new Figures()
  const failed: number[] = []
  const byRule = new Map<string, number[]>()
  const startedAt = performance.now()
  let saidAt = startedAt
  for (let seed = first; seed < first + runs; seed += 1) {
    const story = await play(seed, trace)
    figures.take(story.figures)
    for (const line of story.lines) say(line)
    if (story.faults.length > 0) {
      failed.push(seed)
      if (failed.length <= MOST_SHOWN) showFailure(story)
      for (const rule of new Set(story.faults.map((fault) => fault.rule)))
        byRule.set(rule, [...(byRule.get(rule) ?? []), seed])
    }
    const now = performance.now()
    if (now - saidAt < PROGRESS) continue
    saidAt = now
    const done = seed - first + 1
    const rate = Math.round((done * 1_000) / (now - startedAt))
    say(`${done} of ${runs}, ${rate} a second, ${failed.length} failed`)
  }
  const took = (performance.now() - startedAt) / 1_000
  say(`\n${runs} scenarios from seed ${first} in ${took.toFixed(1)} s`)
  for (const [what, n] of figures.entries()) say(`  ${what.padEnd(34)} ${n}`)
  for (const [rule, seeds] of byRule)
    say(`failed by ${rule}: ${seeds.length} (seeds ${seeds.slice(0, 12).join(' ')})`)
  if (failed.length === 0) return
  say(
    `${failed.length} failed; one of them again: npm run soak -- model --seed ${failed[0]} --runs 1 --trace`,
  )
  process.exitCode = 1
}

const [what = 'model'] = positionals
const runs = Number(values.runs ?? 100_000)
const seed = Number(values.seed)
if (what === 'model' && Number.isInteger(runs) && Number.isInteger(seed))
  await soak(seed, runs, values.trace)
else if (what === 'rolls' && Number.isInteger(runs) && Number.isInteger(seed)) {
  if (!(await rollAtRandom({ seed, runs }, say))) process.exitCode = 1
} else if (what === 'combined' && values.only === 'smallest') {
  await shrinkCombined(seed, say)
} else if (what === 'combined' && Number.isInteger(runs) && Number.isInteger(seed)) {
  if (!(await combineAtRandom({ seed, runs, trace: values.trace }, say))) process.exitCode = 1
} else if (what === 'reconcile' && Number.isInteger(runs) && Number.isInteger(seed)) {
  if (!(await reconcileAtRandom(values.only, { seed, runs }, say))) process.exitCode = 1
} else if (what === 'leases' && Number.isInteger(runs) && Number.isInteger(seed)) {
  if (!(await leasesAtRandom({ seed, runs }, say))) process.exitCode = 1
} else if (what === 'devices' && Number.isInteger(runs) && Number.isInteger(seed)) {
  if (!(await devicesAtRandom({ seed, runs, only: values.only }, say))) process.exitCode = 1
} else if (what === 'kills') {
  if (!(await killAll(values.only, say))) process.exitCode = 1
} else if (what === 'heap' && Number.isInteger(runs)) {
  if (!(await heapStaysFlat(runs, say))) process.exitCode = 1
} else if (what === 'haproxy' && Number.isInteger(runs)) {
  if (!(await soakHaproxy(values.only, { seed, runs }, say))) process.exitCode = 1
} else if (what === 'envoy' && Number.isInteger(runs)) {
  if (!(await drainAll('envoy', onEnvoy, { seed, runs }, say))) process.exitCode = 1
} else if (what === 'envoy-shapes' && Number.isInteger(runs)) {
  if (!(await drainAll('envoy', drainShapes, { seed, runs }, say))) process.exitCode = 1
} else if (what === 'envoy-fleet' && Number.isInteger(runs)) {
  if (!(await killFleet(values.only, values.runs === undefined ? undefined : runs, say)))
    process.exitCode = 1
} else if (what === 'envoy-crowd') {
  if (!(await drainCrowds(say))) process.exitCode = 1
} else if (what === 'kube') {
  if (!(await soakKube(values.only, say))) process.exitCode = 1
} else {
  say('usage: npm run soak -- model [--runs 100000] [--seed 1] [--trace]')
  say('       npm run soak -- rolls [--runs 1000] [--seed 1]')
  say('       npm run soak -- combined [--runs 1000] [--seed 1] [--trace] [--only smallest]')
  say("       npm run soak -- reconcile [--runs 1000] [--seed 1] [--only 'under a lease']")
  say('       npm run soak -- leases [--runs 2000] [--seed 1]')
  say(
    '       npm run soak -- devices [--runs 300] [--seed 1] [--only f5-bigip|citrix-adc|haproxy-dataplane]',
  )
  say('       npm run soak -- kills [--only <story>]')
  say('       npm run soak -- heap [--runs 100000]')
  say('       npm run soak -- haproxy [--runs 1000] [--seed 1] [--only drains|reloads|pauses|roll]')
  say('       npm run soak -- envoy [--runs 1000] [--seed 1]')
  say('       npm run soak -- envoy-shapes [--runs 1000] [--seed 1]')
  say('       npm run soak -- envoy-fleet [--only grpc|rest|file|callback] [--runs 200]')
  say('       npm run soak -- envoy-crowd')
  say('       npm run soak -- kube [--only <case>]')
  process.exitCode = 2
}
