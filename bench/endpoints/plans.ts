/**
 * What a plan costs as its input grows: members replaced, one change among many, many pools with nothing to do,
 * many ports of one address.
 *
 *     npm run bench endpoints/plans
 *
 * The times of one run are compared with each other: ten times the input may cost at most seventy times as much, else
 * it ends with status 1. What is quadratic costs a hundred times as much; tables that outgrow the processor's caches
 * on a busy machine cost up to fifty. What a controller waits for is compared with a plain copy of the same 10,000 members
 * (`structuredClone`), so that a slow machine breaks no gate: all of them replaced may cost as much as one copy, one
 * change among them a fifth of it. On the machine of the figures in the docs that is below 50 ms and 5 ms.
 */
import { planChanges, type DesiredMember, type PlanOptions } from 'drainable/endpoints'
import type { PoolReading, Reading, Snapshot } from 'drainable/provider'

interface Input {
  readonly desired: readonly DesiredMember[]
  readonly snapshot: Snapshot
  readonly options: PlanOptions
}

function addressOf(n: number): string {
  return `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`
}

function member(pool: string, n: number, port = 8080, address = addressOf(n)): Reading {
  return {
    ref: { pool, member: `m${n}-${port}` },
    present: true,
    identity: `${address}:${port}`,
    address,
    port,
    own: 'ready',
    serves: true,
    health: 'up',
    scopes: [
      {
        scope: 'worker 1',
        incarnation: '1',
        state: 'read',
        sampledAt: 0,
        active: 0,
        queued: 0,
        inForce: true,
      },
    ],
  }
}

function wish(pool: string, n: number, more: Partial<DesiredMember> = {}): DesiredMember {
  return { pool, address: addressOf(n), port: 8080, state: 'serve', ...more }
}

function inputOf(desired: DesiredMember[], readings: Reading[], names: string[]): Input {
  const pools = names.map((pool): PoolReading => ({
    pool,
    serving: 1,
    total: 1,
    whenNone: 'refuse',
  }))
  return { desired, snapshot: { readings, pools }, options: { pools: names, owns: () => true } }
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

const kinds: Record<string, (count: number) => Input> = {
  'all replaced': (count) =>
    inputOf(
      numbers(count).map((n) => wish('web', n + count)),
      numbers(count).map((n) => member('web', n)),
      ['web'],
    ),
  'one change': (count) =>
    inputOf(
      numbers(count).map((n) => wish('web', n, n === 7 ? { state: 'drain' } : {})),
      numbers(count).map((n) => member('web', n)),
      ['web'],
    ),
  'one pool each, nothing to do': (count) =>
    inputOf(
      numbers(count).map((n) => wish(`p${n}`, n)),
      numbers(count).map((n) => member(`p${n}`, n)),
      numbers(count).map((n) => `p${n}`),
    ),
  'ports of one address': (count) =>
    inputOf(
      numbers(count).map((n) => wish('web', 1, { port: n + 1 })),
      numbers(count).map((n) => member('web', n, n + 1, addressOf(1))),
      ['web'],
    ),
  'none in the balancer, one name': (count) =>
    inputOf(
      numbers(count).map((n) => wish('web', n, { member: 'same' })),
      [],
      ['web'],
    ),
}

/** Milliseconds of CPU, of all threads: what else the machine does adds little to it. */
function best(rounds: number, work: () => unknown): number {
  let least = Infinity
  for (let round = 0; round < rounds; round++) {
    const began = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(began)
    least = Math.min(least, (user + system) / 1_000)
  }
  return least
}

const SIZES = [500, 5_000, 10_000, 50_000]
const rows = Object.entries(kinds).map(([kind, make]) => {
  const times = SIZES.map((count) => {
    const { desired, snapshot, options } = make(count)
    return best(Math.max(5, 200_000 / count), () => planChanges(desired, snapshot, options))
  })
  const [, small = Number.NaN, , large = Number.NaN] = times
  return { kind, times, ratio: large / small }
})
console.table(
  Object.fromEntries(
    rows.map(({ kind, times, ratio }) => [
      kind,
      {
        ...Object.fromEntries(SIZES.map((n, i) => [`${n}, ms`, Number(times[i]?.toPrecision(3))])),
        '50,000 : 5,000': Number(ratio.toPrecision(3)),
      },
    ]),
  ),
)
/** How much of a copy of the same members each may cost. */
const GATES: Readonly<Record<string, number>> = { 'all replaced': 1, 'one change': 0.2 }
const GATE_AT = 10_000
const broken = rows.flatMap(({ kind, times }) => {
  const most = GATES[kind]
  const make = kinds[kind]
  const cost = times[SIZES.indexOf(GATE_AT)]
  if (most === undefined || make === undefined || cost === undefined) return []
  const { desired, snapshot } = make(GATE_AT)
  const copy = best(10, () => structuredClone({ desired, snapshot }))
  const words = `${kind}, ${GATE_AT}: ${cost.toPrecision(3)} ms, ${(cost / copy).toPrecision(2)} of a copy (${copy.toPrecision(3)} ms)`
  console.log(`${words}; at most ${most}`)
  return cost / copy <= most ? [] : [words]
})
const steep = rows.filter(({ ratio }) => !(ratio < 70))
for (const { kind, ratio } of steep)
  console.error(`${kind}: ten times the input costs ${ratio.toFixed(0)} times as much`)
process.exitCode = steep.length + broken.length > 0 ? 1 : 0
