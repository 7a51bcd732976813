// Whole pool: green in, blue out, undo for an hour, from another process if need be.
import { ready, startDrain, restore, fileTickets, type Ticket } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
declare const errorRateHigh: (ms: number) => Promise<boolean>
await using lb = haproxyRuntime({ socket: '/run/haproxy/admin.sock' })
await ready(
  lb,
  ['web-g1', 'web-g2'].map((member) => ({ pool: 'web', member })),
  { waitHealthy: '2m' },
)
const d = startDrain(
  lb,
  ['web-b1', 'web-b2'].map((member) => ({ pool: 'web', member })),
  { timeout: '10m', keepReady: 2, tickets: fileTickets('/var/lib/bg'), id: 'blue' },
)
await d.done
if (await errorRateHigh(600_000)) {
  const t: Ticket = await d.ticket
  await restore(lb, t)
}
// whole backend, traffic already moved by map: no client may be left
await startDrain(lb, { pool: 'blue' }, { keepReady: 0, timeout: '10m' }).done
