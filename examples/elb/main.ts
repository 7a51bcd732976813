/**
 * Drains a target of an AWS ELB target group through an adapter of one's own (adapter.ts). The group is a
 * stand-in in memory; the adapter takes the vendor's client as well.
 */
import { drain, ready } from 'drainable'
import { awsTargetGroup } from './adapter.ts'
import { FakeTargetGroup } from './fake.ts'

const arn = 'arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/web/1'
const times = { freshness: 10, delay: 50 }
const elb = new FakeTargetGroup(['i-1', 'i-2'], times.delay)
await using group = awsTargetGroup(arn, elb, times)

const report = await drain(group, { pool: arn, member: 'i-1' }, { timeout: '10s' })
console.log(report.outcome)
await ready(group, { pool: arn, member: 'i-1' }, { timeout: '10s' })
console.log('ready again')
