import { renameSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A path, or a TCP port of this machine. */
export type SocketAddress = string | { readonly host: string; readonly port: number }

/** One connection that was accepted; it is closed with the listener. */
export interface Connection {
  close(): void
}

/** A socket that can be taken away and come back. */
export class Listener {
  readonly #open: (socket: Socket) => Connection
  readonly #limit: number
  readonly #sockets = new Map<Socket, Connection | undefined>()
  #server: Server | undefined
  #address: SocketAddress
  #stopped = Promise.resolve()

  /** @param limit - connections beyond it are accepted and not read until one ends */
  constructor(address: SocketAddress, limit: number, open: (socket: Socket) => Connection) {
    this.#address = address
    this.#limit = limit
    this.#open = open
  }

  /** Connections that are open at present. */
  get sockets(): number {
    return this.#sockets.size
  }

  get address(): SocketAddress {
    return this.#address
  }

  /** Listens, after {@link Listener.stop} at the same place again. */
  async listen(): Promise<void> {
    await this.#stopped
    if (typeof this.#address === 'string') await rm(this.#address, { force: true })
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
      this.#sockets.set(socket, undefined)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        this.#sockets.delete(socket)
        this.#admit()
      })
      this.#admit()
    })
    const at = this.#address
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      if (typeof at === 'string') server.listen(at, resolve)
      else server.listen(at.port, at.host, resolve)
    })
    if (typeof at === 'string') await chmod(at, 0o600)
    else this.#address = { host: at.host, port: (server.address() as AddressInfo).port }
    this.#server = server
  }

  /** From this call on nothing listens: connecting is refused, and what is open is closed. */
  stop(): Promise<void> {
    const server = this.#server
    if (!server) return this.#stopped
    this.#server = undefined
    const path = typeof this.#address === 'string' ? this.#address : undefined
    // The path stays behind with no listener, as after a crash; closing would remove it.
    if (path !== undefined) renameSync(path, `${path}.left`)
    this.#stopped = new Promise((resolve) => server.close(() => resolve()))
    if (path !== undefined) renameSync(`${path}.left`, path)
    this.#closeAll()
    return this.#stopped
  }

  /** For good. */
  async close(): Promise<void> {
    await this.stop()
    if (typeof this.#address === 'string') await rm(this.#address, { force: true })
  }

  #closeAll(): void {
    for (const [socket, connection] of this.#sockets) {
      connection?.close()
      socket.destroy()
    }
  }

  #admit(): void {
    const open = [...this.#sockets.values()].filter(Boolean).length
    let free = this.#limit - open
    for (const [socket, connection] of this.#sockets) {
      if (connection || free-- <= 0) continue
      this.#sockets.set(socket, this.#open(socket))
      socket.resume()
    }
  }
}

/** A folder of its own for sockets; paths to sockets must be short. */
export function socketFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'haproxy-'))
}
