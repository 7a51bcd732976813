/** A process that drains one machine of an appliance, with a ticket, until it is killed. */
import { drain, fileTickets } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'

const [url = '', folder = '', address = '', id = ''] = process.argv.slice(2)

await using adc = citrixAdc({ url, username: 'admin', password: 'secret' })
await drain(adc, { address }, { timeout: '1m', tickets: fileTickets(folder), id })
