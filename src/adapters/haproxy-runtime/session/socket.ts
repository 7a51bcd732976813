import type { Socket } from 'node:net'
import { StringDecoder } from 'node:string_decoder'
import type { ConnectionOptions } from 'node:tls'
import { checkPinned, glanceAtCertificate, toTlsConnect } from '../../../kit/tls.js'
import {
  isDistrust,
  isPlainPort,
  isUnknownIssuer,
  refusedOurs,
  wantsOurs,
  withAdvice,
} from '../../../kit/tls-words.js'
import { Turnstile } from '../../../kit/turnstile.js'
import { isIP } from '../../../provider/builtins.js'
import { closedError, DrainableError, type ErrorCode } from '../../../provider/error.js'
import type { Tls } from '../../../provider/option-schemas.js'
import type { CallContext } from '../../../provider/contract.js'
import type { Address } from '../codec/address.js'
import { MAX_REPLY } from '../codec/replies.js'
import { PROVIDER } from '../name.js'

/** The part of a call's context that a command uses: its signal, and the clock for its limits. */
export type Within = Pick<CallContext, 'clock' | 'signal'>

/** The limits of one socket. */
export interface SocketLimits {
  readonly connectTimeout: number
  /** The time limit for a complete reply. */
  readonly replyTimeout: number
  /** The most connections at once: `stats maxconn` is 10 by default, and beyond it HAProxy does not answer. */
  readonly maxConnections: number
}

/** The names of HAProxy's sockets for messages, and where their rights are set. */
const KINDS = {
  stats: ["its 'stats socket'", "its 'stats socket' line"],
  master: ['its master socket (haproxy -S)', 'haproxy -S'],
} as const

export type SocketKind = keyof typeof KINDS

/** Turns a socket error into ours. `sent`: the command may have been executed. */
export function socketError(
  label: string,
  cause: unknown,
  sent: boolean,
  kind: SocketKind = 'stats',
): DrainableError {
  const { code, message } = cause as NodeJS.ErrnoException
  const data = { provider: PROVIDER, cause }
  const [it, line] = KINDS[kind]
  const say = (error: ErrorCode, words: string): DrainableError =>
    new DrainableError(error, `${label}: ${words}`, data)
  const distrust = tlsWords(cause)
  if (distrust !== undefined) {
    const error = refusedOurs(cause) === undefined ? 'UNREACHABLE' : 'UNAUTHENTICATED'
    return new DrainableError(error, `${label}: ${distrust}`, { ...data, retryable: false })
  }
  switch (code) {
    case 'ENOENT':
      return say('UNREACHABLE', `no such socket, is HAProxy running and is this the path of ${it}`)
    case 'ECONNREFUSED':
      return say(
        'UNREACHABLE',
        `nothing listens there: HAProxy is not running, or finishes its work (SIGUSR1), or this is not ${it}`,
      )
    case 'EAGAIN':
      return say(
        'UNREACHABLE',
        "too many connections wait there, HAProxy is frozen, or all connections of its 'stats maxconn' are taken",
      )
    case 'EACCES':
    case 'EPERM':
      return say(
        'FORBIDDEN',
        `this user is not allowed to open the socket, see 'user', 'group' and 'mode' of ${line}`,
      )
    default:
      return say(
        sent ? 'CONNECTION_LOST' : 'UNREACHABLE',
        message || code || 'the connection failed',
      )
  }
}

/** Why a handshake can never succeed; undefined for any other failure. */
function tlsWords(cause: unknown): string | undefined {
  const refused = refusedOurs(cause)
  if (refused !== undefined) return wantsOurs(refused)
  if (isPlainPort(cause))
    return "the server there does not speak TLS: HAProxy ignores 'ssl' on a 'stats socket', so leave out tls, or put a frontend with 'ssl crt' before the socket"
  return isDistrust(cause) && cause instanceof Error ? cause.message : undefined
}

/**
 * One listening socket of HAProxy. Every command line uses its own connection, read to the close. So replies can't
 * get out of step, and no slot of `stats maxconn` is used between two looks.
 */
export class RuntimeSocket {
  readonly label: string
  /** Whether it is on this machine, by its address. */
  readonly local: boolean
  /** Whether it is a unix socket: only then does the end of a connection mean that its process has gone. */
  readonly unix: boolean
  readonly #address: Address
  readonly #limits: SocketLimits
  readonly #tls: Tls | undefined
  readonly #kind: SocketKind
  readonly #open = new Set<Socket>()
  /** Second connections, opened to read a certificate that was not trusted. */
  readonly #glances = new Set<AbortController>()
  readonly #slots: Turnstile
  #closed = false

  /** @throws `INVALID_OPTIONS` if `tls` names a file that can't be read */
  constructor(
    address: Address,
    limits: SocketLimits,
    { tls, kind = 'stats' }: { readonly tls?: Tls | undefined; readonly kind?: SocketKind } = {},
  ) {
    this.#kind = kind
    this.#address = address
    this.#limits = limits
    this.#tls = tls
    this.#slots = new Turnstile(limits.maxConnections)
    this.label = address.label
    this.local = address.local
    this.unix = 'path' in address.to
    if (tls !== undefined) toTlsConnect(tls)
  }

  /**
   * Sends one line and returns the whole answer until HAProxy closes, or until `complete` returns true (the master
   * socket does not close by itself).
   *
   * @throws `UNREACHABLE` (nothing was sent), `CALL_TIMEOUT`, `CONNECTION_LOST` (it may have been
   * executed, or will be), `MALFORMED_REPLY` (too large), or `signal.reason`
   */
  exchange(line: string, ctx: Within, complete?: (text: string) => boolean): Promise<string> {
    return this.#slots.run(ctx.signal, async () => {
      const { socket, text } = await this.keep(line, ctx, complete)
      socket.destroy()
      return text
    })
  }

  /** The same on a connection that stays, outside of the limit on connections at once. The caller closes it. */
  async keep(
    line: string,
    ctx: Within,
    complete?: (text: string) => boolean,
  ): Promise<{ readonly socket: Socket; readonly text: string }> {
    const socket = await this.#connect(ctx)
    try {
      const text = await this.#converse(socket, line, ctx, complete)
      socket.once('close', () => this.#open.delete(socket)).resume()
      return { socket, text }
    } catch (error) {
      this.#open.delete(socket)
      socket.destroy()
      throw error
    }
  }

  close(): void {
    this.#closed = true
    for (const socket of this.#open) socket.destroy(new Error('closed'))
    for (const glance of this.#glances) glance.abort()
    this.#open.clear()
  }

  #connect({ clock, signal }: Within): Promise<Socket> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason)
        return
      }
      if (this.#closed) {
        reject(closedError(PROVIDER, this.label))
        return
      }
      const socket = this.#dial()
      const glance = new AbortController()
      this.#open.add(socket)
      const cancel = clock.setTimeout(() => {
        fail(
          new DrainableError(
            'UNREACHABLE',
            `${this.label}: no connection within ${this.#limits.connectTimeout} ms`,
            { provider: PROVIDER },
          ),
        )
      }, this.#limits.connectTimeout)
      const ready = this.#tls === undefined ? 'connect' : 'secureConnect'
      const settle = (): void => {
        cancel()
        signal.removeEventListener('abort', onAbort)
        socket.off(ready, onConnect)
        socket.off('error', onError)
      }
      const fail = (error: unknown): void => {
        settle()
        glance.abort()
        this.#glances.delete(glance)
        this.#open.delete(socket)
        socket.on('error', ignore)
        socket.destroy()
        reject(error)
      }
      const onAbort = (): void => fail(signal.reason)
      const onError = (cause: Error): void => {
        const explain = (known: Error): void => fail(this.#error(known, false))
        if (!isUnknownIssuer(cause)) {
          explain(cause)
          return
        }
        this.#glances.add(glance)
        void this.#advise(cause, { clock, signal: glance.signal }).then(explain)
      }
      const onConnect = (): void => {
        const other = this.#unpinned(socket)
        if (other !== undefined) {
          onError(other)
          return
        }
        settle()
        socket.on('error', ignore)
        socket.setNoDelay(true)
        resolve(socket)
      }
      socket.once(ready, onConnect)
      socket.once('error', onError)
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  #dial(): Socket {
    const { to } = this.#address
    return this.#tls === undefined
      ? process.getBuiltinModule('net').createConnection(to)
      : process.getBuiltinModule('tls').connect(this.#secure(this.#tls))
  }

  #secure(tls: Tls): ConnectionOptions {
    const { to } = this.#address
    const host = 'host' in to && isIP(to.host) === 0 ? to.host : undefined
    const name = tls.servername ?? host
    return { ...to, ...toTlsConnect(tls), ...(name && { servername: name }) }
  }

  /** Adds an unknown certificate's fingerprint to the error, so that it can be compared and pinned. */
  async #advise(cause: Error, ctx: Within): Promise<Error> {
    const shown = await glanceAtCertificate(this.#secure(this.#tls ?? {}), ctx)
    return withAdvice(cause, shown)
  }

  /** The error for a certificate that is not the pinned one. */
  #unpinned(socket: Socket): Error | undefined {
    return this.#tls !== undefined && socket instanceof process.getBuiltinModule('tls').TLSSocket
      ? checkPinned(this.#tls, socket.getPeerCertificate())
      : undefined
  }

  #converse(
    socket: Socket,
    line: string,
    { clock, signal }: Within,
    complete: ((text: string) => boolean) | undefined,
  ): Promise<string> {
    return new Promise((resolve, reject) => {
      const decoder = new StringDecoder('utf8')
      let text = ''
      // One limit for the whole answer, so that a slow trickle ends too.
      const cancel = clock.setTimeout(() => done(this.#silent(text)), this.#limits.replyTimeout)
      const done = (error: unknown): void => {
        cancel()
        signal.removeEventListener('abort', onAbort)
        socket.removeAllListeners('data').removeAllListeners('end').removeAllListeners('close')
        if (error === undefined) resolve(text)
        else reject(error)
      }
      const onAbort = (): void => done(signal.reason)
      socket.on('data', (chunk: Buffer) => {
        text += decoder.write(chunk)
        if (text.length > MAX_REPLY) {
          done(
            new DrainableError(
              'MALFORMED_REPLY',
              `${this.label}: the answer is larger than ${MAX_REPLY} bytes`,
              { provider: PROVIDER },
            ),
          )
        } else if (complete?.(text) === true) done(undefined)
      })
      // A text before a reset is not a complete answer, even if it looks complete.
      socket.on('error', (cause) => done(this.#error(cause, true)))
      socket.on('end', () => done(text === '' ? this.#hungUp() : undefined))
      socket.on('close', () => done(text === '' ? this.#hungUp() : undefined))
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) {
        onAbort()
        return
      }
      socket.write(`${line}\n`)
    })
  }

  #error(cause: Error, sent: boolean): DrainableError {
    return this.#closed
      ? closedError(PROVIDER, this.label)
      : socketError(this.label, cause, sent, this.#kind)
  }

  #hungUp(): DrainableError {
    if (this.#closed) return closedError(PROVIDER, this.label)
    return new DrainableError(
      'CONNECTION_LOST',
      this.#tls === undefined && 'host' in this.#address.to
        ? `${this.label}: HAProxy closed the connection without an answer; where that port speaks TLS, give tls`
        : `${this.label}: HAProxy closed the connection without an answer`,
      { provider: PROVIDER },
    )
  }

  #silent(text: string): DrainableError {
    const ms = this.#limits.replyTimeout
    return new DrainableError(
      'CALL_TIMEOUT',
      text === ''
        ? `${this.label}: no answer within ${ms} ms, HAProxy is frozen, or all connections of its 'stats maxconn' are taken`
        : `${this.label}: the answer was not complete within ${ms} ms`,
      { provider: PROVIDER },
    )
  }
}

function ignore(): void {
  // ignore errors of a socket that no call waits for any more
}
