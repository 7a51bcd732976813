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
  isDrainableError,
  resumeDrain,
  startDrain,
  type Drain,
  type MemberRef,
  type TicketStore,
} from 'drainable'
import { callbackEndpoints, envoy, fileEndpoints, restEndpoints } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { readFile } from 'node:fs/promises'
import { systemClock } from '../../../src/provider/clock.js'
import { writeEds } from './sets.js'

/** The number of a point (0: none), or the label of the first one that has it. */
export type KillAt = number | string

/** How the sets reach the proxies. `callback`: a control plane that is not ours writes the file that they watch. */
export type FleetSink = 'grpc' | 'rest' | 'file' | 'callback'

export interface FleetChildOptions {
  readonly sink: FleetSink
  readonly port: number
  /** That the proxies watch, with a file or a callback. */
  readonly file: string
  readonly admin: readonly string[]
  readonly tickets: string
  readonly sets: readonly unknown[]
  readonly ref: MemberRef
  readonly killAt: KillAt
}

const {
  sink: kind,
  port,
  file,
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
const initial = {
  adopt: true,
  else: sets,
  held: (instance: string) => heldMembers(files, { instance }),
} as const
const served = kind === 'grpc' ? grpcEndpoints({ port, initial }) : restEndpoints({ port, initial })
const sink =
  kind === 'file'
    ? fileEndpoints({ cluster: 'web', path: file })
    : kind === 'callback'
      ? callbackEndpoints({
          load: async () => JSON.parse(await readFile(file, 'utf8')) as unknown,
          publish: (set) => write([set]),
        })
      : served

async function write(written: readonly unknown[]): Promise<void> {
  await writeEds(file, written, String(performance.now()))
}
const publish = sink.publish.bind(sink)
sink.publish = (...args) => around('a publication', () => publish(...args))
await using lb = envoy({ endpoints: sink, admin })

const orphans = await findOrphans(files, lb)
/** On a loaded machine a proxy may take too long to answer; then it is asked again. */
async function look() {
  for (const end = performance.now() + 30_000; ;) {
    try {
      return await lb.observe([ref], { signal: AbortSignal.timeout(30_000), clock: systemClock })
    } catch (error) {
      if (!isDrainableError(error, 'CALL_TIMEOUT') || performance.now() > end) throw error
    }
  }
}

const { readings } = await look()
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
if (sink === served) await served.set(sets)
else await write(sets)
for (;;) {
  const [one] = (await look()).readings
  if (one?.present === true && one.own === 'ready' && one.scopes.every((at) => at.inForce)) break
  await new Promise((resolve) => setTimeout(resolve, 10))
}
process.stdout.write('ready\n')
process.stdin.pause()
