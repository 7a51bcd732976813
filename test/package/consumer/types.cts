import { drain, isDrainableError, ready } from 'drainable'
import type { DrainableProvider, Policy } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import type { MemberRef } from 'drainable/provider'
import { fakeClock, fakeProvider } from 'drainable/testing'
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
