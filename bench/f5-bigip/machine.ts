/**
 * One machine in many pools of a BIG-IP at 100 ms a request, without traffic: requests and seconds until idle, and to
 * open it again, with the defaults of both adapter and drain. Against the stand-in, by a clock that stands still while
 * requests are on their way, so the figures are the same on every computer.
 *
 * `npm run bench f5-bigip/machine`
 */
import { startDrain } from 'drainable'
import { f5Bigip } from 'drainable/f5-bigip'
import { startFake } from 'drainable/testing/f5-bigip'
import { ioClock } from '../../test/support/io-clock.js'

const MACHINE = '10.0.0.1'
const MEMBERS = [`/Common/${MACHINE}:80`, '/Common/10.0.0.2:80']

/** What is drained, of how many pools, and how. */
const CASES = [
  ['by its node', 300, undefined, true],
  ['by its node, no seal', 300, undefined, false],
  ['by its node', 40, undefined, true],
  ['with a port, member by member', 40, 80, true],
] as const

const rows: Record<string, string | number>[] = []
for (const [how, count, port, seal] of CASES) {
  using clock = ioClock()
  const pools = Object.fromEntries(
    Array.from({ length: count }, (_, i) => [`/Common/pool${i}`, MEMBERS]),
  )
  await using fake = await startFake({ pools, latency: 100, clock: clock.latency, tls: false })
  const { url, username, password } = fake
  await using lb = f5Bigip({ url, username, password })
  const target = port === undefined ? { address: MACHINE } : { address: MACHINE, port }
  const run = startDrain(lb, target, { clock, seal, timeout: '5m' })
  const { outcome } = await clock.run(run.done)
  const idle = { requests: fake.requests.length, at: clock.now() }
  await clock.run(run.restore())
  rows.push({
    drained: how,
    pools: count,
    outcome,
    'requests until idle': idle.requests,
    'until idle, s': (idle.at / 1_000).toFixed(1),
    'requests to open it again': fake.requests.length - idle.requests,
    'to open it, s': ((clock.now() - idle.at) / 1_000).toFixed(1),
  })
}
console.table(rows)
