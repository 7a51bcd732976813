import { drain, ready } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake } from 'drainable/testing/haproxy-runtime'

const web1 = { pool: 'web', member: 'web1' }
const fake = await startFake({ pools: { web: ['web1', 'web2'] }, master: true })
const balancer = haproxyRuntime({ socket: fake.socket, master: fake.master })
try {
  const report = await drain(balancer, web1, { timeout: '20s' })
  if (report.members[0]?.verifiedIdle !== true) throw new Error(JSON.stringify(report))
  await ready(balancer, web1)
  console.log('drained and ready')
} finally {
  await balancer.close()
  await fake.close()
}
