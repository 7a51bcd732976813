/**
 * What one look at 4, 5, 40 and 1,000 of 1,000 service groups of a Citrix ADC costs, in requests and bytes, and what an hour's watch of 50
 * members costs where nothing happens. Against the stand-in; the hour is that of a clock that stands still while requests
 * are on their way, so the figures are the same on every computer.
 *
 * `npm run bench citrix-adc/looks`
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { watch } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import { startFake } from 'drainable/testing/citrix-adc'
import { ioClock } from '../../test/support/io-clock.js'
import { Meter } from '../support/traffic.js'

const POOLS = 1_000
const HOUR = 3_600_000

const looks: object[] = []
{
  const pools = Object.fromEntries(
    Array.from({ length: POOLS }, (_, i) => [`sg${i}`, ['10.0.0.1:80', '10.0.0.2:80']]),
  )
  await using fake = await startFake({ pools, tls: false })
  using meter = new Meter()
  const { url, username, password } = fake
  for (const count of [4, 5, 40, POOLS]) {
    using clock = ioClock()
    await using lb = citrixAdc({ url, username, password })
    const refs = Array.from({ length: count }, (_, i) => ({
      pool: `sg${i}`,
      member: '10.0.0.1:80',
    }))
    const look = (): Promise<unknown> => {
      const { signal } = new AbortController()
      return clock.run(lb.observe(refs, { clock, signal }))
    }
    const first = await meter.of(look)
    await meter.of(look)
    const third = await meter.of(look)
    looks.push({
      pools: count,
      'first look: requests': first.requests,
      'first: bytes': first.bytes,
      'a later look: requests': third.requests,
      'a later one: bytes': third.bytes,
    })
  }
}
console.table(looks)

const watched: object[] = []
for (const spread of [1, 50]) {
  using clock = ioClock()
  const pools = Object.fromEntries(
    Array.from({ length: spread }, (_, i) => [
      `sg${i}`,
      Array.from({ length: 50 / spread }, (__, k) => `10.0.${i}.${k + 1}:80`),
    ]),
  )
  await using fake = await startFake({ pools, tls: false, latency: 50, clock: clock.latency })
  const { url, username, password } = fake
  await using lb = citrixAdc({ url, username, password })
  const refs = Object.entries(pools).flatMap(([pool, members]) =>
    members.map((member) => ({ pool, member: member })),
  )
  const end = new AbortController()
  const view = watch(lb, refs, { clock, signal: end.signal })
  await clock.run(new Promise<void>((resolve) => clock.setTimeout(resolve, HOUR)))
  watched.push({ pools: spread, members: refs.length, 'requests in an hour': fake.requests.length })
  end.abort()
  await nextTurn()
  await clock.run(Promise.resolve(view.done).catch(() => undefined))
}
console.table(watched)
