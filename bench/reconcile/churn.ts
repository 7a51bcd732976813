/**
 * What a reconciler costs at 10,000 endpoints in 500 Services with 100 changes a second: CPU as a share of one
 * core, memory, and the time from the change of an endpoint to its hold in force.
 *
 * `npm run bench reconcile/churn`
 *
 * The balancer is the one in memory, in this process: what it takes to make a snapshot of 10,000 members is told
 * apart. Each change goes the whole way: its Service's slices are merged and mapped, and the whole set is given.
 * Ends with status 1 where half of the holds take more than a second, or all of it more than one core.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { reconcile } from 'drainable'
import { mapEndpoints, mergeSlices, toDesired, type DesiredMember } from 'drainable/endpoints'
import {
  collect,
  EACH,
  lb,
  looks,
  names,
  noteHolds,
  places,
  SERVICES,
} from '../support/many-services.js'

const CHANGES = 100
/** Each endpoint leaves for that long, then comes back, in milliseconds. */
const AWAY = 2_000
const WARM_UP = 10_000
const MEASURED = 20_000

/** The endpoints that are leaving, by Service. */
const leaving = names.map(() => new Set<number>())

function sliceOf(s: number): unknown {
  const endpoints = Array.from({ length: EACH }, (_, e) => {
    const gone = leaving[s]?.has(e) === true
    return {
      addresses: [places.get(`${names[s]}-${e}`)?.address],
      conditions: { ready: !gone, serving: true, terminating: gone },
      targetRef: { kind: 'Pod', namespace: 'shop', name: `p${s}-${e}`, uid: `u${s}-${e}` },
    }
  })
  return {
    metadata: {
      name: `${names[s]}-x`,
      namespace: 'shop',
      labels: { 'kubernetes.io/service-name': names[s] },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: places.get(`${names[s]}-0`)?.port, protocol: 'TCP' }],
    endpoints,
  }
}

const desired: (readonly DesiredMember[])[] = names.map((_, s) => desiredOf(s))

function desiredOf(s: number): readonly DesiredMember[] {
  const decisions = mapEndpoints(mergeSlices([sliceOf(s)], { port: 'http' }))
  return toDesired(decisions, { pool: names[s] ?? '' })
}

const loop = reconcile(lb, { pools: names, owns: () => true, timeout: '1m' })
/** When endpoints were said to leave, by member. */
const asked = new Map<string, number>()
const waits: number[] = []
const now = (): number => performance.now()
let told = 0
loop.on('fault', (error) => console.error(error.message))
loop.on('status', () => {
  told += 1
})

function change(s: number, e: number, goes: boolean): void {
  const set = leaving[s]
  if (set === undefined || set.has(e) === goes) return
  if (goes) {
    set.add(e)
    asked.set(`${names[s]}-${e}`, performance.now())
  } else set.delete(e)
  desired[s] = desiredOf(s)
  loop.set(desired.flat())
}

let next = 0
function tick(): void {
  noteHolds(asked, waits, now)
  // Half of the changes let an endpoint leave, the other half bring back those that left before.
  for (let i = 0; i < CHANGES / 20; i += 1) {
    const n = (next += 1)
    const [s, e] = [(n * 7_919) % SERVICES, n % EACH]
    change(s, e, true)
    setTimeout(() => change(s, e, false), AWAY)
  }
}

loop.set(desired.flat())
await loop.settled()
const timer = setInterval(tick, 100)
const watch = setInterval(() => noteHolds(asked, waits, now), 5)
await pause(WARM_UP)
collect()
const from = {
  cpu: process.cpuUsage(),
  at: performance.now(),
  took: looks.took,
  looks: looks.count,
  told,
}
waits.length = 0
let peak = 0
const heap = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage().heapUsed)
}, 500)
await pause(MEASURED)
const { user, system } = process.cpuUsage(from.cpu)
const passed = performance.now() - from.at
for (const one of [timer, watch, heap]) clearInterval(one)
collect()
const sorted = waits.sort((a, b) => a - b)
const at = (share: number): number => sorted[Math.floor((sorted.length - 1) * share)] ?? NaN
const share = (user + system) / 1_000 / passed
const ofLooks = (looks.took - from.took) / passed
console.table({
  'CPU, % of a core': Math.round(share * 100),
  'of which the balancer in memory': Math.round(ofLooks * 100),
  'looks a second': Number((((looks.count - from.looks) * 1_000) / passed).toPrecision(3)),
  'status events a second': Number((((told - from.told) * 1_000) / passed).toPrecision(3)),
  holds: sorted.length,
  'change to hold, median ms': Math.round(at(0.5)),
  'change to hold, 99 % ms': Math.round(at(0.99)),
  'heap, MB': Math.round(process.memoryUsage().heapUsed / 2 ** 20),
  'heap, peak MB': Math.round(peak / 2 ** 20),
})

process.exitCode = share < 1 && at(0.5) < 1_000 ? 0 : 1
await loop.close()
