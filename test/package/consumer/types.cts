import { drain, isDrainableError, ready } from 'drainable'
import type { DrainableProvider, Policy } from 'drainable'
import * as citrix from 'drainable/citrix-adc'
import * as endpoints from 'drainable/endpoints'
import * as envoy from 'drainable/envoy'
import * as grpc from 'drainable/envoy/grpc'
import * as bigip from 'drainable/f5-bigip'
import * as dataplane from 'drainable/haproxy-dataplane'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import * as machine from 'drainable/machine'
import type { MemberRef } from 'drainable/provider'
import { fakeClock, fakeProvider } from 'drainable/testing'
import * as citrixFake from 'drainable/testing/citrix-adc'
import * as envoyFake from 'drainable/testing/envoy'
import * as bigipFake from 'drainable/testing/f5-bigip'
import * as dataplaneFake from 'drainable/testing/haproxy-dataplane'
import { startFake } from 'drainable/testing/haproxy-runtime'

const policy: Policy = { timeout: '2m' }
const ref: MemberRef = { pool: 'web', member: 'web1' }

export async function main(): Promise<number> {
  const fake = await startFake({ pools: { web: ['web1', 'web2'] } })
  const balancer: DrainableProvider = haproxyRuntime({ socket: fake.socket })
  const other: DrainableProvider = fakeProvider({ pools: { web: ['a', 'b'] }, clock: fakeClock() })
  try {
    const report = await drain(balancer, ref, policy)
    await drain(other, ref)
    await ready(balancer, ref)
    // @ts-expect-error a number of seconds is not a duration with a unit
    await drain(balancer, ref, { timeout: '30 seconds' })
    return report.members.length
  } catch (error) {
    return isDrainableError(error, 'DRAIN_TIMEOUT') ? error.report.members.length : 0
  }
}

export const factories = [
  bigip.f5Bigip,
  citrix.citrixAdc,
  dataplane.haproxyDataplane,
  grpc.grpcEndpoints,
  envoy,
  endpoints.mapEndpoints,
  machine.transition,
  bigipFake.startFake,
  citrixFake.startFake,
  dataplaneFake.startFake,
  envoyFake.startFake,
]
