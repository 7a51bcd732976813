/**
 * From the last byte at the backend to `idle`, on the newest HAProxy of the engines folder, beside what people drain with
 * today: Ansible's community.general.haproxy and a loop in the shell. One drain at a time, after work of 1.5 s to
 * 45 s; then of servers with a maxconn, whose streams are listed once; then twenty at once. Backends and clients have
 * processes of their own.
 *
 * `npm run bench haproxy-runtime/latency`
 */
import { readFileSync } from 'node:fs'
import { startDrain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { engines } from '../../test/support/engines.js'
import { Haproxy } from '../../test/support/haproxy.js'
import type { Backends } from './support/backends.js'
import { Child, now } from './support/child.js'
import type { Clients } from './support/clients.js'
import { keep } from '../support/tables.js'
import { quantile, spread } from './support/figures.js'
import { byAnsible, byShell, type Drainer, installAnsible, installSocat } from './support/others.js'

/** How long the work lasts, ms, and how many drains of it one after another. */
const ALONE = [
  [1_500, 30],
  [4_000, 12],
  [45_000, 1],
] as const
const LIMITED = 30
const AT_ONCE = 20
const ROUNDS = 5
/** Drains by others, each after work of 4 s and a bit: so long that all of them look at least once. */
const OTHERS = 5
const OTHERS_WORK = 4_000
/** Of a preStop hook, ms. */
const SLEEP = 15_000
/** Spread of the last bytes, ms, so that they fall anywhere between two looks. */
const SPREAD = 250
/** Clock ticks of /proc a second. */
const TICKS = 100

/** `limited`: its servers have a maxconn. */
type Pool = 'web' | 'limited'

const names = Array.from({ length: AT_ONCE }, (_, index) => `s${index}`)
const engine = engines('haproxy').at(-1)
if (engine === undefined) throw new Error('no HAProxy: npm run engines')

await using backends = new Child<Backends>('./backends.ts')
await using clients = new Child<Clients>('./clients.ts')
await using haproxy = await Haproxy.start({
  engine,
  global: '  stats maxconn 100',
  config: (port) => `
frontend f_web
  bind 127.0.0.1:${port('web')}
  default_backend web
backend web
  cookie SRV insert
${names.map((name) => `  server ${name} 127.0.0.1:${port(name)} cookie ${name}`).join('\n')}
  server rest 127.0.0.1:${port('rest')}
frontend f_limited
  bind 127.0.0.1:${port('limited')}
  default_backend limited
backend limited
  cookie SRV insert
${names.map((name) => `  server ${name} 127.0.0.1:${port(name)} cookie ${name} maxconn 100`).join('\n')}
  server rest 127.0.0.1:${port('rest')}`,
})
for (const name of names) await backends.call('start', name, haproxy.port(name))
await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
/** What each look took, ms: the pause between two follows from it. */
let looks: number[] = []
const observe = lb.observe.bind(lb)
lb.observe = async (...asked) => {
  const from = performance.now()
  const seen = await observe(...asked)
  looks.push(performance.now() - from)
  return seen
}

/** One drain of a server with a request in flight that ends so long after: milliseconds from its last byte. */
async function measure(
  name: string,
  lasts: number,
  drainer: Drainer,
  pool: Pool = 'web',
): Promise<number> {
  const answer = clients.call('hold', haproxy.port(pool), name)
  await backends.call('busy', name, 1)
  const idle = drainer(haproxy.socket, pool, name)
  await new Promise((resolve) => setTimeout(resolve, lasts))
  const lastByteAt = await backends.call('release', name)
  if ((await answer) !== 200) throw new Error('the answer was not whole')
  const took = (await idle) - lastByteAt
  if (took < 0) throw new Error(`idle was said of ${name} before its last byte`)
  await haproxy.cli(`set server ${pool}/${name} state ready`)
  return took
}

function byUs(settle?: 0): Drainer {
  return async (_, pool, member) => {
    const more = settle === undefined ? {} : { settle }
    const options = { timeout: '5m', keepReady: 0, ...more } as const
    const drained = startDrain(lb, { pool, member }, options)
    let idleAt = NaN
    drained.on('idle', () => (idleAt = now()))
    const { outcome } = (await drained.done).members[0] ?? {}
    await drained.close()
    if (outcome !== 'idle') throw new Error(`ended as ${outcome}`)
    return idleAt
  }
}

async function oneByOne(
  count: number,
  lasts: number,
  drainer: Drainer,
  pool?: Pool,
): Promise<number[]> {
  const took: number[] = []
  for (let n = 0; n < count; n += 1)
    took.push(await measure(names[n % AT_ONCE]!, lasts + ((n * 97) % SPREAD), drainer, pool))
  return took
}

/** Seconds of CPU that a process has had. */
function cpuOf(pid: number): number {
  const cells = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(cells[11]) + Number(cells[12])) / TICKS
}

const share = (seconds: number, ms: number): string => `${((seconds * 1e5) / ms).toFixed(1)} %`

console.log(`HAProxy ${haproxy.version}; from the last byte at the backend to idle`)
const ours: number[] = []
const pid = await haproxy.pid()
for (const [lasts, count] of ALONE) {
  const [from, cpu, balancer] = [now(), process.cpuUsage(), cpuOf(pid)]
  looks = []
  const took = await oneByOne(count, lasts, byUs())
  const used = process.cpuUsage(cpu)
  const ms = now() - from
  ours.push(...took)
  console.log(
    `one drain, work of ${lasts / 1_000} s: ${spread(took)}; of a core ours ${share((used.user + used.system) / 1e6, ms)}, HAProxy ${share(cpuOf(pid) - balancer, ms)}; a look took ${quantile(looks, 0.5).toFixed(1)} ms`,
  )
}
console.log(`one drain, all: ${spread(ours)}`)
const limited = await oneByOne(LIMITED, 1_500, byUs(), 'limited')
console.log(`one drain of a server with a maxconn, work of 1.5 s: ${spread(limited)}`)
for (const settle of [0, undefined] as const) {
  const took: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const all = names.map((name, index) =>
      measure(name, 1_500 + (index * SPREAD) / AT_ONCE, byUs(settle)),
    )
    took.push(...(await Promise.all(all)))
  }
  console.log(
    `${AT_ONCE} at once, work of 1.5 s, ${settle === 0 ? 'settle: 0' : 'defaults'}: ${spread(took)}`,
  )
}
const lastByte: (readonly [string, number, number, number])[] = []
const note = (title: string, took: readonly number[]): void =>
  void lastByte.push([
    title,
    ...[0.5, 0.99].map((at) => Math.round(quantile(took, at))),
    took.length,
  ] as [string, number, number, number])
note('drainable, defaults', ours)
const ansible = await installAnsible()
const others: readonly (readonly [string, Drainer])[] = [
  ['community.general.haproxy, wait_interval 5 (its default)', byAnsible(ansible, 5)],
  ['community.general.haproxy, wait_interval 1', byAnsible(ansible, 1)],
  ['sh, socat and show stat, sleep 1', byShell(await installSocat())],
]
for (const [title, drainer] of others) {
  const took = await oneByOne(OTHERS, OTHERS_WORK, drainer)
  const ratio = quantile(took, 0.5) / quantile(ours, 0.5)
  console.log(`${title}: ${spread(took)}; ${ratio.toFixed(0)} times as long as ours`)
  note(title, took)
}
// A sleep is chosen before anybody knows how long the work lasts: what is left of it is waited for in vain.
const work = Array.from({ length: OTHERS }, (_, n) => OTHERS_WORK + ((n * 97) % SPREAD))
note(
  `sleep ${SLEEP / 1_000}, as in a preStop hook`,
  work.map((lasts) => SLEEP - lasts),
)
keep({
  id: 'last-byte',
  title: 'From the last byte to the word that the server is idle',
  about: `One drain after another on HAProxy ${haproxy.version}, with a loaded server that ends its work after ${OTHERS_WORK / 1_000} s (ours: 1.5 s to 45 s). Milliseconds from the last byte at the backend to \`idle\`, or to the end of the program.`,
  columns: ['by', 'p50 ms', 'p99 ms', 'drains'],
  rows: lastByte,
  plot: { column: 'p50 ms', axis: 'milliseconds after the last byte, p50', log: true },
  notShown:
    'Whether the word was right: the module, the loop and the sleep say it also while an old worker still serves. The sleep is computed, not run; under longer work it cuts.',
})
