// preStop: drains itself within the grace period. The pod dies anyway: never refuse, wait for a replacement, say what was left.
import { drain, isDrainableError } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
const graceMs = Number(process.env.GRACE_SECONDS ?? 30) * 1000,
  margin = 8000
const lb = haproxyRuntime({ socket: { host: process.env.LB_HOST!, port: 9999 } })
try {
  const r = await drain(
    lb,
    { address: process.env.POD_IP!, port: 8080 },
    {
      timeout: Math.max(graceMs - margin, 1000),
      onTimeout: 'proceed',
      onMinimum: 'wait',
      onUnreachable: 'wait',
      settle: '500ms',
    },
  )
  for (const m of r.members)
    if (!m.verifiedIdle)
      console.error(`${m.ref.member}: left ${m.why.map((w) => w.text).join('; ')}`)
} catch (e) {
  console.error(isDrainableError(e) ? `${e.code}: ${e.message}` : e) // a failing hook must not be worse than none
} finally {
  await lb.close()
}
