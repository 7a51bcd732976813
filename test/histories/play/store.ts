import type { TicketStore } from 'drainable'
import type { Lines } from './lines.js'
import type { UserProcess } from './user-process.js'

/** How the instance of a balancer begins in a ticket, whichever process has written it. */
export const ANY = 'any~'

/** Of no process: the machine's pids end long before. */
const NOBODY = 2 ** 31 - 2

/** What the tickets of all processes are kept in. */
export class SharedTickets {
  readonly #kept = new Map<string, { readonly text: string; readonly by: UserProcess }>()
  readonly #lines: Lines
  fails = false
  /** Whether it is told when a ticket is written or deleted. */
  told = true

  constructor(lines: Lines) {
    this.#lines = lines
  }

  /** The store as one process has it. Two processes of a history are one of Node: what tells them apart is the instance. */
  of(process: UserProcess): TicketStore {
    return {
      get: (key) => this.#call(process, () => this.read(process, key)),
      set: (key, value) =>
        this.#call(process, () => {
          this.keep(process, key, value)
          this.#say(process, `ticket ${key} written`)
        }),
      delete: (key) =>
        this.#call(process, () => {
          if (this.#kept.delete(key)) this.#say(process, `ticket ${key} deleted`)
        }),
      keys: () => this.#call(process, () => [...this.#kept.keys()]),
    }
  }

  read(process: UserProcess, key: string): unknown {
    const kept = this.#kept.get(key)
    if (kept === undefined) return undefined
    const text = kept.text.replaceAll(ANY, prefixOf(process))
    if (kept.by.alive) return JSON.parse(text)
    const ticket = JSON.parse(text) as { owner?: { pid?: number | null } }
    if (typeof ticket.owner?.pid === 'number') ticket.owner.pid = NOBODY
    return ticket
  }

  keep(process: UserProcess, key: string, value: unknown): void {
    this.#kept.set(key, {
      text: JSON.stringify(value).replaceAll(prefixOf(process), ANY),
      by: process,
    })
  }

  /** Another program has written over it. */
  damage(process: UserProcess, key: string, field: string): void {
    const ticket = this.read(process, key) as Record<string, unknown>
    this.keep(process, key, { ...ticket, [field]: 'damaged' })
  }

  ids(): readonly string[] {
    return [...this.#kept.keys()].sort()
  }

  #say({ name }: UserProcess, line: string): void {
    if (this.told) this.#lines.say(name, line)
  }

  async #call<T>(process: UserProcess, call: () => T): Promise<T> {
    await process.untilHistoryEnds()
    if (this.fails) throw new Error('the disk is full')
    return call()
  }
}

/** How an instance begins in one process. */
export function prefixOf({ name }: UserProcess): string {
  return `${name}~`
}
