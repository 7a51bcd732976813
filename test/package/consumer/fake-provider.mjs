import { drain, ready } from 'drainable'
import { fakeProvider } from 'drainable/testing'

const web1 = { pool: 'web', member: 'web1' }
const balancer = fakeProvider({ pools: { web: ['web1', 'web2'] } })
const report = await drain(balancer, web1, { timeout: '20s' })
if (report.members[0]?.verifiedIdle !== true) throw new Error(JSON.stringify(report))
await ready(balancer, web1)
console.log('drained and ready')
