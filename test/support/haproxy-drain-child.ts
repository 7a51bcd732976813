/**
 * A process that drains web/s1 and is killed by its parent at a stage: it says so in one line and
 * goes no further. `node --import scripts/source.mjs haproxy-drain-child.ts SOCKET MASTER TICKETS STAGE`
 */
import { fileTickets, startDrain, type TicketStore } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'

const [socket = '', master = '', folder = '', stage = ''] = process.argv.slice(2)
const files = fileTickets(folder)

function reached(): Promise<never> {
  process.stdout.write('reached\n')
  return new Promise(() => setInterval(() => undefined, 1_000))
}

/** Stops after the write of that name: the change it announces is not sent, or its answer not noted. */
let writes = 0
const tickets: TicketStore = {
  get: (key) => files.get(key),
  delete: (key) => files.delete(key),
  async set(key, value) {
    const result = await files.set(key, value)
    if (key !== 'drain-1') return result
    writes += 1
    if (stage === `write-${writes}`) return reached()
    return result
  },
}

const lb = haproxyRuntime({ socket, master, replyTimeout: '30s' })
const drained = startDrain(
  lb,
  { pool: 'web', member: 's1' },
  { timeout: '60s', tickets, id: 'drain-1' },
)
drained.on('phase', ({ to }) => {
  if (to === stage) void reached()
})
await drained.done
if (stage === 'held') await reached()
