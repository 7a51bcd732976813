import { chmod, mkdtemp, rename, rm } from 'node:fs/promises'
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

  /** @param limit - connections beyond it are accepted and not read until one ends */
  constructor(address: SocketAddress, limit: number, open: (socket: Socket) => Connection) {
    this.#address = address
    this.#limit = limit
    this.#open = open
  }

  get address(): SocketAddress {
    return this.#address
  }

  async listen(): Promise<void> {
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

  /** Nobody listens any more: connecting is refused, and what is open is closed. */
  async refuse(): Promise<void> {
    const server = this.#server
    if (!server) return
    this.#server = undefined
    const path = typeof this.#address === 'string' ? this.#address : undefined
    // The path stays behind with nobody on it, as after a crash; closing would remove it.
    if (path !== undefined) await rename(path, `${path}.left`)
    this.#closeAll()
    await new Promise<void>((resolve) => server.close(() => resolve()))
    if (path !== undefined) await rename(`${path}.left`, path)
  }

  async resume(): Promise<void> {
    if (this.#server) return
    if (typeof this.#address === 'string') await rm(this.#address, { force: true })
    await this.listen()
  }

  async close(): Promise<void> {
    this.#closeAll()
    const server = this.#server
    this.#server = undefined
    if (server) await new Promise<void>((resolve) => server.close(() => resolve()))
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
