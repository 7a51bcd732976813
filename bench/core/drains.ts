/**
 * What many drains at once cost: CPU as a share of one core, memory and looks, of drains that wait for
 * their work, and of the same once they are idle and held.
 *
 * `npm run bench core/drains`
 */
import { setTimeout as pause } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { startDrain } from 'drainable'
import { fakeProvider } from 'drainable/testing'

const PROVIDERS = 50
const DRAINS = 20
/** Beyond those that are drained, so that the floor holds. */
const OTHERS = 1
const WARM_UP = 5_000
/** The best of some windows: what else the machine does is not ours. */
const WINDOWS = 5
const WINDOW = 4_000

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function heap(): number {
  collect()
  collect()
  return process.memoryUsage().heapUsed / 2 ** 20
}

const names = Array.from({ length: DRAINS + OTHERS }, (_, i) => `web${i}`)
let looks = 0
const balancers = Array.from({ length: PROVIDERS }, () => {
  const lb = fakeProvider({ pools: { web: names } })
  // It notes every call, which is not what is measured.
  const observe = lb.observe.bind(lb)
  lb.observe = (refs, ctx) => {
    looks += 1
    ;(lb.requests as unknown[]).length = 0
    return observe(refs, ctx)
  }
  return lb
})
const targets = balancers.flatMap((lb) =>
  names.slice(0, DRAINS).map((member) => ({ lb, ref: { pool: 'web', member } })),
)
const ends = targets.map(({ lb, ref }) => lb.occupy(ref))

async function measure(what: string, before: number): Promise<void> {
  await pause(WARM_UP)
  const start = performance.now()
  const seen = looks
  const shares: number[] = []
  for (let i = 0; i < WINDOWS; i += 1) {
    const from = performance.now()
    const cpu = process.cpuUsage()
    await pause(WINDOW)
    const { user, system } = process.cpuUsage(cpu)
    shares.push((user + system) / 1_000 / (performance.now() - from))
  }
  const share = Math.min(...shares)
  const rate = ((looks - seen) * 1_000) / (performance.now() - start)
  const grown = heap() - before
  console.log(
    `${what}: ${share.toFixed(3)} of a core, ${grown.toFixed(1)} MB, ${rate.toFixed(0)} looks a second`,
  )
}

const before = heap()
const startedAt = performance.now()
const runs = targets.map(({ lb, ref }) => startDrain(lb, ref, { timeout: Infinity }))
await measure(`${runs.length} drains over ${PROVIDERS} providers, waiting`, before)
for (const end of ends) end()
const reports = await Promise.all(runs.map((run) => run.done))
const idle = reports.filter(({ outcome }) => outcome === 'idle').length
console.log(`${idle} idle after ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`)
await measure(`${runs.length} drains over ${PROVIDERS} providers, held`, before)
await Promise.all(runs.map((run) => run.release()))
await Promise.all(balancers.map((lb) => lb.close()))
if (idle < runs.length) process.exitCode = 1
