import { awsTargetGroup } from '../../examples/elb/adapter.js'
import { FakeTargetGroup } from '../../examples/elb/fake.js'
import type { ContractHarness } from 'drainable/testing'
import { describe } from 'vitest'
import { contractTests } from '../support/contract.js'
import { SKIPPED } from './skipped/elb-example.js'

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
  contractTests(SKIPPED.example, open)
})
