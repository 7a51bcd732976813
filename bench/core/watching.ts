/**
 * What it costs to wait for 1 to 1,000 drains at once: CPU as a share of one core, and looks a second. Balancers in memory, so
 * that it is ours alone; up to twenty drains on each.
 *
 * `npm run bench core/watching`
 */
import { setTimeout as pause } from 'node:timers/promises'
import { startDrain } from 'drainable'
import { fakeProvider } from 'drainable/testing'
import { keep } from '../support/tables.js'

const SIZES = [1, 10, 100, 1_000]
const ON_ONE = 20
const WARM_UP = 3_000
/** The best of some windows: what else the machine does is not ours. */
const WINDOWS = 4
const WINDOW = 2_000

const rows: [string, number, number][] = []
for (const size of SIZES) {
  let looks = 0
  const balancers = Array.from({ length: Math.ceil(size / ON_ONE) }, () => {
    const members = Array.from({ length: Math.min(size, ON_ONE) + 1 }, (_, n) => `web${n}`)
    const lb = fakeProvider({ pools: { web: members } })
    // It notes every call, which is not what is measured.
    const observe = lb.observe.bind(lb)
    lb.observe = (refs, ctx) => {
      looks += 1
      ;(lb.requests as unknown[]).length = 0
      return observe(refs, ctx)
    }
    return { lb, members: members.slice(1) }
  })
  const drains = balancers.flatMap(({ lb, members }) =>
    members.map((member) => {
      const ref = { pool: 'web', member }
      lb.occupy(ref)
      return startDrain(lb, ref, { timeout: Infinity })
    }),
  )
  await Promise.all(drains.map((run) => run.inForce))
  await pause(WARM_UP)
  const [seen, from] = [looks, performance.now()]
  const shares: number[] = []
  for (let n = 0; n < WINDOWS; n += 1) {
    const [cpu, start] = [process.cpuUsage(), performance.now()]
    await pause(WINDOW)
    const { user, system } = process.cpuUsage(cpu)
    shares.push((user + system) / 1_000 / (performance.now() - start))
  }
  const rate = ((looks - seen) * 1_000) / (performance.now() - from)
  rows.push([
    size.toLocaleString('en'),
    Math.round(Math.min(...shares) * 1_000) / 10,
    Math.round(rate),
  ])
  console.log(
    `${size} drains: ${rows.at(-1)?.[1] ?? 0} % of a core, ${rate.toFixed(0)} looks a second`,
  )
  await Promise.all(drains.map((run) => run.release()))
  await Promise.all(balancers.map(({ lb }) => lb.close()))
}
keep({
  id: 'watching',
  title: 'Waiting for many drains at once',
  about: `Drains that wait for work, up to ${ON_ONE} on each balancer; the best of ${WINDOWS} windows of ${WINDOW / 1_000} s.`,
  columns: ['drains', '% of one core', 'looks a second'],
  rows,
  plot: { column: '% of one core', axis: 'per cent of one core' },
  notShown: 'What a real balancer adds: sockets, replies to read, and its own time to answer.',
})
