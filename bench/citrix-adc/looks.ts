/**
 * What one look at 4, 5, 40 and 1,000 of 1,000 service groups of a Citrix ADC costs, in requests and bytes, and what an hour's watch of 50
 * members costs where nothing happens. Against the stand-in; the hour is that of a clock that stands still while requests
 * are on their way, so the figures are the same on every computer.
 *
 * `npm run bench citrix-adc/looks`
 */
import { citrixAdc } from 'drainable/citrix-adc'
import { startFake } from 'drainable/testing/citrix-adc'
import { measureLooks } from '../support/looks.js'

await measureLooks({
  few: [4, 5],
  pool: (i) => `sg${i}`,
  member: (address) => address,
  start: (options) => startFake({ ...options, tls: false }),
  connect: citrixAdc,
})
