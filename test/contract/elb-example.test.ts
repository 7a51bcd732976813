import { awsTargetGroup } from '../../examples/elb/adapter.js'
import { FakeTargetGroup } from '../../examples/elb/fake.js'
import { providerContract, type ContractHarness } from 'drainable/testing'
import { describe, test } from 'vitest'

const ARN = 'arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/web/1'

function open(): Promise<ContractHarness> {
  const elb = new FakeTargetGroup(['i-1', 'i-2'])
  const provider = awsTargetGroup(ARN, elb, { freshness: 10, delay: 20 })
  return Promise.resolve({
    provider,
    pool: ARN,
    members: [
      { pool: ARN, member: 'i-1' },
      { pool: ARN, member: 'i-2' },
    ],
    setBehind: async (ref, to) => elb.setBehind(ref, to),
    disconnect: async () => elb.unplug(),
    requests: () => elb.calls,
    [Symbol.asyncDispose]: () => provider.close(),
  })
}

describe.concurrent('the adapter of docs/adapters/your-own.md', () => {
  for (const c of providerContract(open)) test(c.name, c.run, c.timeout)
})
