/**
 * A process that drains members of a BIG-IP, to be killed by its parent in the middle.
 * `node --import scripts/source.mjs f5-drain-child.ts URL CA USER PASSWORD TICKETS TARGET`
 */
import { fileTickets, startDrain, type Target } from 'drainable'
import { f5Bigip } from 'drainable/f5-bigip'

const [url = '', ca = '', username = '', password = '', folder = '', target = '{}'] =
  process.argv.slice(2)
const lb = f5Bigip({ url, username, password, tls: { ca }, freshness: '10ms', minInterval: '20ms' })
const tickets = fileTickets(folder)
await startDrain(lb, JSON.parse(target) as Target, { timeout: '60s', tickets, id: 'killed' }).done
