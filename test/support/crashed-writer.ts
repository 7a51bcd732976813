/** A process that is killed while it writes a ticket: its temporary file stays. Its argument is the folder. */
import { watch } from 'node:fs'
import { fileTickets } from 'drainable'

const [, , path = ''] = process.argv
watch(path, (_event, name) => {
  if (name?.endsWith('.tmp') === true) process.kill(process.pid, 'SIGKILL')
})
const much = 'x'.repeat(64_000_000)
await fileTickets(path).set('one', { much })
