/** A process that drains web/web1 durably, with a ticket, and holds it until it is killed. */
import { fileTickets, startDrain } from 'drainable'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'

const [url = '', folder = '', id = ''] = process.argv.slice(2)

const login = { url, username: 'admin', password: 'secret' }
const lb = haproxyDataplane({ ...login, durable: true, maintCuts: false, callTimeout: '60s' })
const tickets = fileTickets(folder)
const run = startDrain(lb, { pool: 'web', member: 'web1' }, { timeout: '2m', tickets, id })
await run.done
process.stdout.write('held\n')
setInterval(() => undefined, 1_000)
