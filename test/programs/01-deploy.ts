// Deploy to one server behind one HAProxy: drain -> install -> back -> healthy.
import { drain, ready, isDrainableError } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
declare function install(): Promise<void>
const web1 = { pool: 'web', member: 'web1' }
const stop = new AbortController()
process.once('SIGINT', () => stop.abort())
await using lb = haproxyRuntime({
  socket: '/run/haproxy/admin.sock',
  master: '/run/haproxy-master.sock',
})
try {
  const report = await drain(lb, web1, {
    timeout: '2m',
    signal: stop.signal,
    onEvent: (e) => {
      if (e.type === 'load')
        console.error(`${e.ref.member}: ${e.active} in flight, ${e.why[0]?.text ?? ''}`)
    },
  })
  const m = report.members[0]!
  if (m.wasAdmin !== 'ready') console.error(`was already ${m.wasAdmin} (an earlier run?)`)
  await install()
  await ready(lb, web1, { waitHealthy: '60s' })
} catch (e) {
  if (isDrainableError(e, 'DRAIN_TIMEOUT')) {
    for (const w of e.report.members.flatMap((m) => m.why)) console.error(w.text, w.hint ?? '')
    process.exitCode = 1
  } else if (isDrainableError(e, 'POOL_AT_MINIMUM')) {
    console.error('web1 is the last one serving')
    process.exitCode = 2
  } else throw e
}
