import type { ConnectionOptions, PeerCertificate } from 'node:tls'
import * as z from 'zod/mini'
import { nodeFs } from '../provider/builtins.js'
import type { CallContext } from '../provider/contract.js'
import { DrainableError } from '../provider/error.js'
import { matching, nonEmpty, type Tls } from '../provider/option-schemas.js'

/** Node's own module, loaded by the first call that needs it: most connections are plain, and an import costs 3 ms. */
const nodeTls = () => process.getBuiltinModule('node:tls')

/** The result of {@link toTlsConnect}. */
export type TlsConnect = ConnectionOptions

/** The `tls` option of every adapter that speaks HTTPS. */
export const tlsSchema = z
  .strictObject({
    ca: z.exactOptional(nonEmpty()),
    fingerprint256: z.exactOptional(
      matching(
        /^[0-9a-f]{2}(:[0-9a-f]{2}){31}$|^[0-9a-f]{64}$/i,
        'expected the SHA-256 fingerprint of the certificate: 32 pairs of hex digits, with or without colons, as `openssl x509 -noout -fingerprint -sha256` prints them',
      ),
    ),
    cert: z.exactOptional(nonEmpty()),
    key: z.exactOptional(nonEmpty()),
    servername: z.exactOptional(nonEmpty()),
    insecure: z.exactOptional(
      z.literal(true, 'expected true; leave it out where certificates are to be checked'),
    ),
  })
  .check(
    z.refine((tls) => (tls.cert === undefined) === (tls.key === undefined), {
      message: 'cert and key go together',
    }),
  )

/**
 * Makes the options of node:tls.
 *
 * With a pinned fingerprint the chain is not verified: the certificate itself is trusted, so `rejectUnauthorized` is
 * off, and `checkPinned` checks the pin once the socket is secure.
 *
 * @throws `INVALID_OPTIONS` if a file named by the options cannot be read, or key and certificate do not match
 */
export function toTlsConnect(tls: Tls | undefined): ConnectionOptions {
  if (tls === undefined) return {}
  const options: ConnectionOptions = {}
  if (tls.ca !== undefined) options.ca = readPem(tls.ca, 'tls.ca')
  if (tls.cert !== undefined) options.cert = readPem(tls.cert, 'tls.cert')
  if (tls.key !== undefined) options.key = readPem(tls.key, 'tls.key')
  assertUsable(options)
  if (tls.servername !== undefined) options.servername = tls.servername
  if (tls.insecure === true || tls.fingerprint256 !== undefined) options.rejectUnauthorized = false
  else
    options.checkServerIdentity = (host, cert) =>
      nodeTls().checkServerIdentity(tls.servername ?? host, cert)
  return options
}

/** The error of a connection with another certificate than the pinned one; undefined if it is the pinned one. */
export function checkPinned(tls: Tls | undefined, cert: PeerCertificate): Error | undefined {
  if (tls?.fingerprint256 === undefined || tls.insecure === true) return undefined
  const found = plain(cert.fingerprint256)
  if (found === plain(tls.fingerprint256)) return undefined
  return new Error(
    `the server's certificate has the SHA-256 fingerprint ${cert.fingerprint256}, tls.fingerprint256 names another`,
  )
}

/** What OpenSSL refuses later at every connection is refused now. Its words name no part of a key. */
function assertUsable(options: ConnectionOptions): void {
  try {
    nodeTls().createSecureContext(options)
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause)
    throw new DrainableError(
      'INVALID_OPTIONS',
      `tls: expected PEM texts that fit together in ca, cert and key, OpenSSL says: ${words}`,
    )
  }
}

/** Longest that a look at a certificate may take, ms on the clock of the call. */
const GLANCE = 2_000

/**
 * The SHA-256 fingerprint of the certificate that is shown there, whichever CA signed it; undefined where none
 * came, or the signal fired before. Nothing is sent but the handshake.
 */
export function glanceAtCertificate(
  options: ConnectionOptions,
  { clock, signal }: Pick<CallContext, 'clock' | 'signal'>,
): Promise<string | undefined> {
  if (signal.aborted) return Promise.resolve(undefined)
  return new Promise((resolve) => {
    const socket = nodeTls().connect({ ...options, rejectUnauthorized: false }, () => done())
    const done = (): void => {
      cancel()
      signal.removeEventListener('abort', done)
      const certificate = socket.getPeerCertificate() as Partial<PeerCertificate> | null
      resolve(certificate?.fingerprint256)
      socket.destroy()
    }
    const cancel = clock.setTimeout(done, GLANCE)
    signal.addEventListener('abort', done, { once: true })
    // Not once: a socket that is destroyed in the middle may fail again.
    socket.on('error', done)
  })
}

function plain(fingerprint: string | undefined): string {
  return (fingerprint ?? '').replaceAll(':', '').toLowerCase()
}

/** A value that can be printed as a path: with an extension, it can't be a key in base64 or hex. */
const PATH = /^[\w./@~ -]{1,200}\.[a-z]{2,5}$/i

/**
 * Reads PEM text, as given or from the named file.
 *
 * A value that is neither can be the key itself in another form (DER in base64, a missing line), and the system's
 * error repeats it: so the value of a private key is never printed, and another value only if it looks like a path.
 *
 * @param field - its name, for the message; one that ends in `key` is a private key
 * @throws `INVALID_OPTIONS` if it is neither PEM text nor a readable PEM file
 */
export function readPem(value: string, field: string): string {
  if (value.includes('-----BEGIN ')) return value
  const expected = `${field}: expected PEM text ('-----BEGIN ...') or the path of a readable PEM file`
  const isPath = PATH.test(value) && !/key$/i.test(field)
  let text: string
  try {
    text = nodeFs().readFileSync(value, 'utf8')
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'an error'
    const what = isPath ? `could not read '${value}'` : 'what was given could not be read'
    throw new DrainableError('INVALID_OPTIONS', `${expected}, ${what} (${code})`)
  }
  if (text.includes('-----BEGIN ')) return text
  const where = isPath ? `'${value}'` : 'the file that was named'
  throw new DrainableError('INVALID_OPTIONS', `${expected}, found no PEM text in ${where}`)
}
