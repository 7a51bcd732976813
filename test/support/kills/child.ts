/**
 * A process that drains and kills itself at one point. It is started ahead, and begins when its first
 * line says what to do. The points are the begin and the end of each call to the balancer and to the ticket
 * store, each change when it is on its way, and the middle of each writing of a file.
 */
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import {
  drain,
  fileTickets,
  ready,
  restore,
  resumeDrain,
  startDrain,
  stepDrain,
  type Drain,
  type DrainEvent,
  type Policy,
  type Ticket,
  type TicketStore,
} from 'drainable'
import { die, Points } from './points.js'
import { RemoteProvider } from './remote-provider.js'
import { say } from './said.js'
import { lines, TICKET, type Answer, type Orders } from './wire.js'

const web1 = { pool: 'web', member: 'web1' }
const web2 = { pool: 'web', member: 'web2' }

let lb: RemoteProvider | undefined
const take = lines((line) => {
  if (lb !== undefined) {
    lb.take(JSON.parse(line) as Answer)
    return
  }
  const orders = JSON.parse(line) as Orders
  const points = new Points(orders.killAt)
  lb = new RemoteProvider(orders.instance, points)
  void run(orders, lb, points).then(() => process.stdin.destroy())
})
process.stdin.setEncoding('utf8').on('data', take)

async function run({ story, folder }: Orders, lb: RemoteProvider, points: Points): Promise<void> {
  breakWrites(points)
  const tickets = withPoints(fileTickets(folder), points)
  const onEvent = (event: DrainEvent): void => {
    if (event.type === 'idle') say({ verb: 'idle', refs: [event.ref] })
  }
  const policy = { timeout: '20s', settle: '0ms', onEvent } satisfies Policy
  const kept = { ...policy, tickets, id: TICKET } satisfies Policy
  const saved = async (): Promise<Ticket> => (await tickets.get(TICKET)) as Ticket
  switch (story) {
    case 'drain': {
      const run = startDrain(lb, web1, kept)
      await run.done
      await twoLooks(lb)
      await undo(run)
      return
    }
    case 'action':
      await drain(lb, web1, kept, () => twoLooks(lb))
      return
    case 'reload': {
      const run = startDrain(lb, web1, kept)
      await run.done
      await undo(run)
      return
    }
    case 'group': {
      const run = startDrain(lb, [web1, web2], kept)
      await run.done
      await undo(run)
      return
    }
    case 'abort': {
      const stop = new AbortController()
      const run = startDrain(lb, web1, { ...kept, onAbort: 'restore', signal: stop.signal })
      run.on('load', () => stop.abort())
      await run.done
      await run.release()
      return
    }
    case 'removed': {
      const run = startDrain(lb, web1, { ...kept, until: 'removed' })
      await run.done
      await run.release()
      return
    }
    case 'steps': {
      const own = { timeout: policy.timeout, settle: policy.settle, id: TICKET } as const
      let step = await stepDrain(lb, { target: web1, policy: own }, { onEvent })
      await tickets.set(TICKET, step.ticket)
      while (step.outcome === undefined) {
        if (step.againIn > 0) await new Promise((resolve) => setTimeout(resolve, step.againIn))
        step = await stepDrain(lb, step.ticket, { onEvent })
        await tickets.set(TICKET, step.ticket)
      }
      await restore(lb, step.ticket, { tickets })
      return
    }
    case 'resume': {
      const run = resumeDrain(lb, await saved(), { tickets, onEvent })
      await run.done
      await undo(run)
      return
    }
    case 'restore':
      await restore(lb, await saved(), { tickets })
      return
    case 'ready':
      await ready(lb, web1)
      return
    default:
      story satisfies never
  }
}

async function undo(run: Drain): Promise<void> {
  await run.restore()
  await run.release()
}

function twoLooks(lb: RemoteProvider): Promise<void> {
  const looks = lb.looks + 2
  return new Promise((resolve) => {
    lb.looked = () => {
      if (lb.looks >= looks) resolve()
    }
  })
}

/** No write is flushed: the disk outlives the process, and waiting for it would take most of the time. */
function breakWrites(points: Points): void {
  const write = fs.writeFile
  const half: typeof fs.writeFile = async (path, data, options) => {
    const text = data as string
    const plain = { ...(options as object), flush: false }
    if (points.reach('half written')) {
      await write(path, text.slice(0, text.length / 2), plain)
      die()
    }
    await write(path, text, plain)
    points.pass('written, not renamed')
  }
  fs.writeFile = half
  syncBuiltinESMExports()
}

function withPoints(files: TicketStore, points: Points): TicketStore {
  const around = async <T>(name: string, call: () => Promise<T>): Promise<T> => {
    points.pass(name)
    const value = await call()
    points.pass(`${name} end`)
    return value
  }
  return {
    get: (key) => around('get', () => files.get(key)),
    set: (key, value) => around('set', () => files.set(key, value)),
    delete: (key) => around('delete', () => files.delete(key)),
    keys: () => files.keys!(),
  }
}
