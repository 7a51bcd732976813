import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import type { FakeMember, FakePool } from './config.js'
import type { Unit } from './unit.js'

export interface VirtualServerOptions {
  readonly pool: string
  /** Clients of one source address come back to their member, also while it is disabled. */
  readonly persist: boolean
  readonly unit: () => Unit
  /** `host:port` behind a member; undefined where it has none. */
  readonly target: (member: FakeMember) => string | undefined
}

/** Forwards TCP connections to the members of a pool, by the rules of disable and force offline. */
export class VirtualServer {
  readonly #options: VirtualServerOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #turn = 0

  constructor(options: VirtualServerOptions) {
    this.#options = options
    this.#server = createServer({ allowHalfOpen: true }, (client) => this.#forward(client))
  }

  get address(): { readonly host: string; readonly port: number } {
    const { address, port } = this.#server.address() as AddressInfo
    return { host: address, port }
  }

  listen(host: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(0, host, () => resolve())
    })
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #forward(client: Socket): void {
    this.#track(client)
    const unit = this.#options.unit()
    const pool = unit.config.pools.get(this.#options.pool)
    const member = pool === undefined ? undefined : this.#pick(unit, pool, client)
    const target = member === undefined ? undefined : this.#options.target(member)
    if (pool === undefined || member === undefined || target === undefined) {
      client.resetAndDestroy() // as BIG-IP does where no member is available
      return
    }
    const at = target.lastIndexOf(':')
    const server = connect({
      host: target.slice(0, at),
      port: Number(target.slice(at + 1)),
      allowHalfOpen: true,
    })
    this.#track(server)
    const flow = unit.open(pool, member, () => {
      client.resetAndDestroy()
      server.destroy()
    })
    client.pipe(server).pipe(client)
    // The flow lasts as long as its server side; an error on one side takes the other one along
    server.on('close', () => unit.end(flow))
    client.on('error', () => server.destroy()).on('close', () => server.end())
    server.on('error', () => client.resetAndDestroy())
  }

  #pick(unit: Unit, pool: FakePool, client: Socket): FakeMember | undefined {
    const source = client.remoteAddress ?? ''
    const record = this.#options.persist
      ? unit.records.find(({ pool: of, client: from }) => of === pool.fullPath && from === source)
      : undefined
    const kept = record === undefined ? undefined : pool.members.get(record.member)
    if (kept !== undefined && accepts(unit, kept, true)) return kept
    const open = [...pool.members.values()].filter((member) => accepts(unit, member, false))
    const member = open[this.#turn % Math.max(1, open.length)]
    this.#turn += 1
    if (member !== undefined && this.#options.persist) {
      unit.forget(({ pool: of, client: from }) => of === pool.fullPath && from === source)
      unit.remember(pool, member, source)
    }
    return member
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket)).on('error', () => socket.destroy())
  }
}

function accepts(unit: Unit, member: FakeMember, persistent: boolean): boolean {
  const node = unit.config.nodes.get(member.node)
  if (member.forcedDown || node?.forcedDown === true || member.monitor === 'down') return false
  if (persistent) return true
  return member.session === 'user-enabled' && node?.session !== 'user-disabled'
}
