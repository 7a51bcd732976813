const { drain, ready } = require('drainable')
const { haproxyRuntime } = require('drainable/haproxy-runtime')
const { startFake } = require('drainable/testing/haproxy-runtime')

async function main() {
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
}

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})
