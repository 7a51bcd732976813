/**
 * What one look at 6, 7, 40 and 1,000 of 1,000 pools of a BIG-IP costs, in requests and bytes, and what an hour's watch of 50
 * members costs where nothing happens. Against the stand-in; the hour is that of a clock that stands still while requests
 * are on their way, so the figures are the same on every computer.
 *
 * `npm run bench f5-bigip/looks`
 */
import { f5Bigip } from 'drainable/f5-bigip'
import { startFake } from 'drainable/testing/f5-bigip'
import { measureLooks } from '../support/looks.js'

await measureLooks({
  few: [6, 7],
  pool: (i) => `/Common/pool${i}`,
  member: (address) => `/Common/${address}`,
  start: (options) => startFake({ ...options, tls: false }),
  connect: f5Bigip,
})
