import { drain } from 'drainable'
import { f5Bigip } from 'drainable/f5-bigip'
import { startFake } from 'drainable/testing/f5-bigip'

async function main() {
  const member = '10.0.0.1:80'
  const fake = await startFake({ pools: { web: [member, '10.0.0.2:80'] } })
  const { url, username, password, ca } = fake
  const quick = { freshness: '200ms', minInterval: '100ms' }
  const lb = f5Bigip({ url, username, password, tls: { ca }, ...quick })
  try {
    const report = await drain(lb, { pool: 'web', member }, { timeout: '20s' })
    console.log(report.outcome)
  } finally {
    await lb.close()
    await fake.close()
  }
}

main().catch((error) => {
  console.error(error.message)
  process.exitCode = 1
})
