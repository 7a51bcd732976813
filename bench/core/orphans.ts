/**
 * What looking for orphans among many tickets costs, beside a plain reading of the same files.
 *
 * `npm run bench core/orphans`
 */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { drain, fileTickets, findOrphans, type Ticket } from 'drainable'
import { fakeProvider } from 'drainable/testing'

const TICKETS = 10_000
/** Of so many one is of another machine, the rest of this process. */
const ORPHAN_EVERY = 100
const ROUNDS = 3

const folder = await mkdtemp(join(tmpdir(), 'drainable-bench-'))
try {
  const store = fileTickets(folder)
  const lb = fakeProvider({ pools: { web: ['web1', 'web2'] } })
  await drain(lb, { pool: 'web', member: 'web1' }, { tickets: store, id: 'first' })
  const ticket = (await store.get('first')) as Ticket
  for (let i = 1; i < TICKETS; i += 1) {
    const host = i % ORPHAN_EVERY === 0 ? 'elsewhere' : ticket.owner.host
    await store.set(`ticket-${i}`, {
      ...ticket,
      id: `ticket-${i}`,
      owner: { ...ticket.owner, host },
    })
  }
  const plain: number[] = []
  const scans: number[] = []
  let found = 0
  for (let round = 0; round < ROUNDS; round += 1) {
    let from = performance.now()
    for (const name of await readdir(folder)) JSON.parse(await readFile(join(folder, name), 'utf8'))
    plain.push(performance.now() - from)
    from = performance.now()
    found = (await findOrphans(store, lb)).length
    scans.push(performance.now() - from)
  }
  const [read, scan] = [Math.min(...plain), Math.min(...scans)]
  console.log(
    `${TICKETS} tickets in files, ${found} orphans: ${scan.toFixed(0)} ms, ${(scan / read).toFixed(1)} times as long as reading and parsing the files one by one (${read.toFixed(0)} ms)`,
  )
  if (found !== Math.floor((TICKETS - 1) / ORPHAN_EVERY)) process.exitCode = 1
  await lb.close()
} finally {
  await rm(folder, { recursive: true, force: true })
}
