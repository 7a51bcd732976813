/**
 * One machine in many service groups of a Citrix ADC at 50 ms a request, without traffic: requests and seconds until
 * idle, and to open it again, with the defaults of both adapter and drain. Against the stand-in, by a clock that stands
 * still while requests are on their way, so the figures are the same on every computer.
 *
 * `npm run bench citrix-adc/machine`
 */
import { startDrain } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import { startFake } from 'drainable/testing/citrix-adc'
import { ioClock } from '../../test/support/io-clock.js'

const MACHINE = '10.0.0.1'

/** How many groups, and whether the list of statistics has the members below each group. */
const CASES = [
  [40, true],
  [40, false],
  [300, true],
] as const

const rows: Record<string, string | number>[] = []
for (const [count, nested] of CASES) {
  using clock = ioClock()
  const pools = Object.fromEntries(
    Array.from({ length: count }, (_, i) => [`sg${i}`, [`${MACHINE}:80`, '10.0.0.2:80']]),
  )
  await using fake = await startFake({
    tls: false,
    pools,
    latency: 50,
    clock: clock.latency,
    bulk: nested ? {} : { stats: false },
  })
  await using adc = citrixAdc({ url: fake.url, username: fake.username, password: fake.password })
  const run = startDrain(adc, { address: MACHINE }, { clock, timeout: '5m' })
  const { outcome } = await clock.run(run.done)
  const idle = { requests: fake.requests.length, at: clock.now() }
  await clock.run(run.restore())
  rows.push({
    groups: count,
    counted: nested ? 'by lists' : 'each alone',
    outcome,
    'requests until idle': idle.requests,
    'until idle, s': (idle.at / 1_000).toFixed(1),
    'requests to open it again': fake.requests.length - idle.requests,
    'to open it, s': ((clock.now() - idle.at) / 1_000).toFixed(1),
  })
}
console.table(rows)
