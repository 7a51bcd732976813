// 40 servers, canary, 10 %, stop on failure, resume after a crash.
import { startRoll, resumeRoll, fileTickets, type Ticket } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
declare function ssh(host: string, cmd: string, o: { signal: AbortSignal }): Promise<void>
declare function isTicket(x: unknown): x is Ticket
await using lb = haproxyRuntime({ socket: '/run/haproxy/admin.sock' })
const tickets = fileTickets('/var/lib/deploy')
const id = 'release-2026.11.21'
const options = {
  act: async (m: { address?: string; attempt: number; signal: AbortSignal }) => {
    await ssh(m.address ?? '', `install --idempotent --attempt ${m.attempt}`, { signal: m.signal })
  },
  tickets,
  id,
} as const
const old = await tickets.get(id)
const run = isTicket(old)
  ? resumeRoll(lb, old, options)
  : startRoll(
      lb,
      { pool: 'web' },
      {
        ...options,
        canary: 1,
        maxUnavailable: '10%',
        keepReady: 30,
        onMinimum: 'wait',
        waitHealthy: '2m',
        timeout: '5m',
        onTimeout: 'terminate',
        onFailure: 'stop',
      },
    )
for await (const e of run)
  if (e.type === 'failed' || e.type === 'healthy') console.log(e.ref.member, e.type)
const report = await run.done
if (report.outcome !== 'done') {
  for (const f of report.failed) console.error(f.ref.member, f.error?.code, f.error?.message)
  console.error(
    'left drained:',
    report.leftDrained.map((r) => r.member),
    'not touched:',
    report.untouched.length,
  )
  process.exitCode = 1
}
