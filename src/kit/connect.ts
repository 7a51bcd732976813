import type * as Undici from 'undici'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { isIP } from '../provider/builtins.js'
import { systemClock, type Clock } from '../provider/clock.js'
import type { Tls } from '../provider/option-schemas.js'
import { checkPinned, glanceAtCertificate, type TlsConnect } from './tls.js'
import { isUnknownIssuer, withAdvice } from './tls-words.js'

/** Where and how connections are made. */
export interface ConnectOptions {
  readonly tls?: Tls | undefined
  /** Unix socket to connect to instead of the target's host. */
  readonly socketPath?: string | undefined
  /** Milliseconds that a connection may take, the TLS handshake included. Default 5,000. */
  readonly connectTimeout?: number
}

/** A connection was given up because no call waited for it any more. Nothing was sent. */
export class GivenUp extends Error {}

/** One connection that is being made. */
interface Attempt {
  readonly clock: Clock
  /** Fires when it is to be given up; its reason is the error of the connection. */
  readonly signal: AbortSignal
  readonly end: () => void
}

/**
 * The calls under way, and the connections that are made for them. undici makes connections for a pool, not for a
 * call, and knows no clock but the real one: so the limit of a connection is measured here, on the clock of the call that
 * came last, and a connection that no call waits for any more is given up.
 */
export class Connecting {
  readonly #clocks = new Set<{ readonly clock: Clock }>()
  readonly #attempts = new Set<AbortController>()

  /** A call begins; the returned function ends it. */
  begin(clock: Clock): () => void {
    const call = { clock }
    this.#clocks.add(call)
    return () => {
      this.#clocks.delete(call)
      if (this.#clocks.size === 0) this.giveUp()
    }
  }

  /** Gives up every connection that is not made yet. */
  giveUp(): void {
    for (const attempt of this.#attempts) attempt.abort(new GivenUp('the connection was given up'))
  }

  /** A connection begins. */
  attempt(ms: number): Attempt {
    const controller = new AbortController()
    const clock = [...this.#clocks].at(-1)?.clock ?? systemClock
    const cancel = clock.setTimeout(() => controller.abort(new ConnectTimeout(ms)), ms)
    this.#attempts.add(controller)
    // undici goes on to the next request that it has queued, also where all of their calls have ended.
    if (this.#clocks.size === 0) this.giveUp()
    const end = (): void => {
      cancel()
      this.#attempts.delete(controller)
    }
    return { clock, signal: controller.signal, end }
  }
}

class ConnectTimeout extends Error {
  readonly code = 'UND_ERR_CONNECT_TIMEOUT'

  constructor(ms: number) {
    super(`no connection within ${ms} ms`)
  }
}

/** Makes connections for undici's pools: TLS verified or pinned, limited on the clock of the calls. */
export function connector(
  options: ConnectOptions,
  secure: TlsConnect,
  build: typeof Undici.buildConnector,
  connecting: Connecting,
): Undici.buildConnector.connector {
  const connect = build({
    ...secure,
    // The limit is ours: see Connecting.
    timeout: 0,
    // A resumed TLS session shows no certificate, and without one there is nothing to compare.
    ...(options.tls?.fingerprint256 === undefined ? {} : { maxCachedSessions: 0 }),
    ...(options.socketPath === undefined ? {} : { socketPath: options.socketPath }),
  } as Undici.buildConnector.BuildOptions) as ReturningConnector
  return (target, callback) => {
    const attempt = connecting.attempt(options.connectTimeout ?? 5_000)
    const socket = connect(target, (...[error, made]) => {
      if (error !== null && isUnknownIssuer(error)) {
        void advise(error, target, options, secure, attempt).then((advised) => {
          attempt.end()
          callback(advised, null)
        })
        return
      }
      attempt.end()
      if (error !== null) {
        callback(error, null)
        return
      }
      const wrong =
        target.protocol === 'https:'
          ? checkPinned(options.tls, (made as TLSSocket).getPeerCertificate())
          : undefined
      if (wrong === undefined) {
        callback(null, made)
        return
      }
      made.destroy()
      callback(wrong, null)
    })
    const { signal } = attempt
    const giveUp = (): void => void socket.destroy(signal.reason as Error)
    if (signal.aborted) giveUp()
    else signal.addEventListener('abort', giveUp, { once: true })
  }
}

/** undici's connector, which returns the socket that it opens; its type does not say so. */
type ReturningConnector = (...given: Parameters<Undici.buildConnector.connector>) => Socket

/** The refusal of an unknown issuer with the fingerprint that the server shows. */
async function advise(
  error: Error,
  target: Undici.buildConnector.Options,
  { tls, socketPath }: ConnectOptions,
  secure: TlsConnect,
  within: Attempt,
): Promise<Error> {
  const host = tls?.servername ?? target.hostname
  const where =
    socketPath === undefined
      ? { host: bare(target.hostname), port: Number(target.port) || 443 }
      : { path: socketPath }
  const servername = isIP(bare(host)) === 0 ? { servername: host } : {}
  return withAdvice(
    error,
    await glanceAtCertificate({ ...secure, ...where, ...servername }, within),
  )
}

/** The address of a host without the brackets of a URL. */
function bare(host: string): string {
  return host.replace(/^\[|\]$/g, '')
}
