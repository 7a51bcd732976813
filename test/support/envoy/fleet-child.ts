/**
 * The controller of a fleet, as a process of its own: it takes over what the one before left, drains one
 * member until it is removed, says what it saw, and serves on until its input ends. It dies by SIGKILL at one
 * point: before or after a write of its ticket or a publication, or when it has said idle.
 *
 * `node --import scripts/source.mjs fleet-child.ts '{"port":..,"admin":[..],"tickets":"..","sets":[..],"ref":{..},"killAt":0}'`
 */
import {
  fileTickets,
  findOrphans,
  heldMembers,
  resumeDrain,
  startDrain,
  type Drain,
  type MemberRef,
  type TicketStore,
} from 'drainable'
import { envoy } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { systemClock } from '../../../src/provider/clock.js'

/** The number of a point (0: none), or the label of the first one that has it. */
export type KillAt = number | string

export interface FleetChildOptions {
  readonly port: number
  readonly admin: readonly string[]
  readonly tickets: string
  readonly sets: readonly unknown[]
  readonly ref: MemberRef
  readonly killAt: KillAt
}

const {
  port,
  admin,
  tickets: folder,
  sets,
  ref,
  killAt,
} = JSON.parse(process.argv[2] ?? '') as FleetChildOptions

let points = 0
function pass(label: string): void {
  points += 1
  process.stdout.write(`point ${points} ${label}\n`)
  if (points === killAt || label === killAt) process.kill(process.pid, 'SIGKILL')
}

async function around<T>(label: string, fn: () => T | Promise<T>): Promise<T> {
  pass(`before ${label}`)
  const value = await fn()
  pass(`after ${label}`)
  return value
}

const files = fileTickets(folder)
const tickets: TicketStore = {
  get: (key) => files.get(key),
  set: (key, value) => around('a write', () => files.set(key, value)),
  delete: (key) => around('a delete', () => files.delete(key)),
}
const sink = grpcEndpoints({
  port,
  initial: { adopt: true, else: sets, held: (instance) => heldMembers(files, { instance }) },
})
const publish = sink.publish.bind(sink)
sink.publish = (...args) => around('a publication', () => publish(...args))
await using lb = envoy({ endpoints: sink, admin })

const orphans = await findOrphans(files, lb)
const signal = AbortSignal.timeout(30_000)
const { readings } = await lb.observe([ref], { signal, clock: systemClock })
const drains: Drain[] = orphans.map(({ ticket }) => resumeDrain(lb, ticket, { tickets }))
if (drains.length === 0 && readings[0]?.present === true) {
  drains.push(startDrain(lb, ref, { timeout: '60s', until: 'removed', tickets, id: 'drain-1' }))
}
for (const drained of drains) {
  drained.on('idle', () => {
    process.stdout.write('idle\n')
    pass('idle')
  })
}
for (const drained of drains) {
  const { outcome, members } = await drained.done
  process.stdout.write(`outcome ${outcome} ${JSON.stringify(members[0]?.why ?? [])}\n`)
  await drained.release()
}
process.stdout.write('done\n')
await new Promise((resolve) => process.stdin.once('data', resolve))
// The next story begins with everybody ready.
await sink.set(sets)
while (sink.receipts?.('web').some(({ state }) => state !== 'acked') !== false) {
  await new Promise((resolve) => setTimeout(resolve, 10))
}
process.stdout.write('ready\n')
process.stdin.pause()
