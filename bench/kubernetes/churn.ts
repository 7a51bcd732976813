/**
 * What a controller costs at 10,000 endpoints in 500 Services with 100 changes a second: `followService` and `reconcile`,
 * as a share of one core, memory, and the time from the change in the API to the hold in force.
 *
 *     npm run bench kubernetes/churn
 *
 * The API server is a fake in a process of its own; the balancer is in memory, in this process, and what a snapshot of
 * 10,000 members takes is told apart. Ends with status 1 where half of the holds take more than a second.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { reconcile } from 'drainable'
import { followService } from 'drainable/kubernetes'
import { configFor } from '../../test/support/kube-api/server.ts'
import { collect, lb, looks, members, names, noteHolds, places } from '../support/many-services.js'

const WARM_UP = 10_000
const MEASURED = 20_000

const cluster = fork(new URL('./support/cluster.ts', import.meta.url), {
  execArgv: ['--import', new URL('../../scripts/source.mjs', import.meta.url).pathname],
})
cluster.send(
  names.map((name) => {
    const all = members(name).map((member) => places.get(member))
    return { port: all[0]?.port, addresses: all.map((one) => one?.address) }
  }),
)
const [{ port }] = (await once(cluster, 'message')) as [{ port: number }]
const asked = new Map<string, number>()
const waits: number[] = []
cluster.on('message', ({ left, at }: { left: string; at: number }) => void asked.set(left, at))

/** A share of one core, in percent, while it waits. */
async function costs(ms: number): Promise<number> {
  const from = { cpu: process.cpuUsage(), at: performance.now() }
  await pause(ms)
  const { user, system } = process.cpuUsage(from.cpu)
  return Math.round((user + system) / 10 / (performance.now() - from.at))
}

const config = configFor(`http://127.0.0.1:${port}`, () => 'secret-token')
const services = names.map((service) => ({
  namespace: 'shop',
  service,
  port: 'http',
  pool: service,
}))
let alone: number
{
  let given = 0
  const taker = { set: () => void (given += 1) }
  await using follower = followService(taker, config, services)
  while (given === 0 || !follower.synced) await pause(20)
  cluster.send('go')
  alone = await costs(MEASURED / 2)
}
asked.clear()

const loop = reconcile(lb, { pools: names, owns: () => true, timeout: '1m' })
loop.on('fault', (error) => console.error(error.message))
const follower = followService(loop, config, services)
let sets = 0
follower.on('problem', (error) => console.error(error.message))
follower.on('set', () => {
  sets += 1
})

while (sets === 0) await pause(20)
const watch = setInterval(() => noteHolds(asked, waits, Date.now), 5)
await pause(WARM_UP)
collect()
const from = { at: performance.now(), took: looks.took, count: looks.count, sets }
waits.length = 0
const share = await costs(MEASURED)
const passed = performance.now() - from.at
clearInterval(watch)
collect()
const sorted = waits.sort((a, b) => a - b)
const at = (share: number): number => sorted[Math.floor((sorted.length - 1) * share)] ?? NaN
console.table({
  'CPU of followService alone, % of a core': alone,
  'CPU with reconcile': share,
  'of which the balancer in memory': Math.round(((looks.took - from.took) * 100) / passed),
  'looks a second': Math.round(((looks.count - from.count) * 1_000) / passed),
  'sets a second': Math.round(((sets - from.sets) * 1_000) / passed),
  holds: sorted.length,
  'change to hold, median ms': Math.round(at(0.5)),
  'change to hold, 99 % ms': Math.round(at(0.99)),
  'heap, MB': Math.round(process.memoryUsage().heapUsed / 2 ** 20),
  'resident, MB': Math.round(process.memoryUsage().rss / 2 ** 20),
})
process.exitCode = at(0.5) < 1_000 ? 0 : 1
cluster.disconnect()
await follower.close()
await loop.close()
