/** A process that writes a ticket and ends. Its argument is the folder. */
import { fileTickets } from 'drainable'

const [, , path = ''] = process.argv
await fileTickets(path).set('one', {})
