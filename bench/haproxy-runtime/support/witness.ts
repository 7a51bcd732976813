/** Looks at one server of a HAProxy all the time, in a process of its own. */
import { createConnection } from 'node:net'
import { setTimeout as pass } from 'node:timers/promises'
import { now, serve } from './child.js'

/** What was seen of one process. */
export interface Seen {
  readonly pid: number
  /** When it answered first, and when it first showed the server as held. */
  readonly answered: number
  held: number | undefined
}

let seen: Seen[] = []
let over = true
let looking: Promise<unknown> = Promise.resolve()

/** One line to the stats socket, read to the close; empty while nothing listens. */
function ask(path: string, line: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = createConnection({ path })
    let text = ''
    socket.setEncoding('utf8')
    socket.on('data', (chunk: string) => (text += chunk))
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(text))
    socket.write(`${line}\n`)
  })
}

export const calls = {
  begin(path: string, pool: string, member: string): void {
    over = false
    const look = async (): Promise<void> => {
      while (!over) {
        const text = await ask(path, `show info;show servers state ${pool}`)
        const at = now()
        const pid = Number(/^Pid: (\d+)/m.exec(text)?.[1])
        const row = text.split('\n').find((one) => one.split(' ')[3] === member)
        if (row !== undefined && pid > 0) {
          let process = seen.find((one) => one.pid === pid)
          if (process === undefined) {
            process = { pid, answered: at, held: undefined }
            seen.push(process)
          }
          if ((Number(row.split(' ')[6]) & 0x09) !== 0) process.held ??= at
        }
        await pass(1)
      }
    }
    looking = look()
  },
  seen: (): readonly Seen[] => seen,
  async end(): Promise<readonly Seen[]> {
    over = true
    await looking
    const all = seen
    seen = []
    return all
  },
}

export type Witness = typeof calls

serve(calls)
