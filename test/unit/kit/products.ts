/** The adapters that speak REST, each on its fake. */
import type { DrainableProvider } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import { f5Bigip } from 'drainable/f5-bigip'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import type { HttpFake } from 'drainable/testing'
import { startFake as startCitrix } from 'drainable/testing/citrix-adc'
import { startFake as startBigip } from 'drainable/testing/f5-bigip'
import { startFake as startDataplane } from 'drainable/testing/haproxy-dataplane'
import type { IoClock } from '../../support/io-clock.js'

interface Product {
  readonly ref: { readonly pool: string; readonly member: string }
  /** The line of the request that changes the state of a member. */
  readonly change: RegExp
  readonly start: (clock: IoClock) => Promise<HttpFake & Login>
  readonly connect: (options: {
    url: string
    username: string
    password: string
  }) => DrainableProvider & AsyncDisposable
}

interface Login {
  readonly username: string
  readonly password: string
}

const MEMBERS = ['10.0.0.1:80', '10.0.0.2:80']
const latency = (clock: IoClock) => ({ latency: 20, clock: clock.latency })

export const PRODUCTS: readonly (readonly [string, Product])[] = [
  [
    'BIG-IP',
    {
      ref: { pool: '/Common/web', member: '/Common/10.0.0.1:80' },
      change: /PATCH .*~Common~web\/members/,
      start: (clock) =>
        startBigip({ pools: { '/Common/web': MEMBERS }, tls: false, ...latency(clock) }),
      connect: f5Bigip,
    },
  ],
  [
    'Citrix ADC',
    {
      ref: { pool: 'web', member: '10.0.0.1:80' },
      change: /POST .*action=(dis|en)able/,
      start: (clock) => startCitrix({ pools: { web: MEMBERS }, tls: false, ...latency(clock) }),
      connect: citrixAdc,
    },
  ],
  [
    'Data Plane API',
    {
      ref: { pool: 'web', member: 's1' },
      change: /PUT .*servers\/s1/,
      start: (clock) => startDataplane({ pools: { web: ['s1', 's2'] }, ...latency(clock) }),
      connect: haproxyDataplane,
    },
  ],
]
