import type { Tls } from '../provider/option-schemas.js'

/** What went wrong in a connection or its TLS handshake, told from the errors of Node and OpenSSL, in our options' names. */

/** Codes of node:tls for a certificate that no known authority has signed. */
const UNKNOWN_ISSUER = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/** What OpenSSL says where the other end speaks no TLS. */
const NO_TLS = /wrong version number|packet length too long|http request|unknown protocol/i

/**
 * Alerts (RFC 8446, section 6.2) by which the other end refuses our certificate, or that there is none:
 * bad_certificate to unknown_ca (42 to 48), access_denied, certificate_required.
 */
const REFUSES_OURS =
  /alert (bad certificate|unsupported certificate|certificate (revoked|expired|unknown|required)|unknown ca|access denied|handshake failure)/i

/** Whether no authority that is known here has signed the certificate that was shown. */
export function isUnknownIssuer(cause: unknown): boolean {
  return UNKNOWN_ISSUER.has(codeOf(cause))
}

/** The same error with what to do, in our options' names: node:tls names its own. */
export function withAdvice(cause: Error, fingerprint: string | undefined): Error {
  const pin =
    fingerprint === undefined
      ? 'pin it by tls.fingerprint256'
      : `pin it by tls.fingerprint256: '${fingerprint}'`
  const [first = ''] = cause.message.split(/[;,]\s/)
  const words = `the certificate is not signed by an authority known here (${first}): give its CA as tls.ca, or, if it is the right one, ${pin}`
  return Object.assign(new Error(words, { cause }), { code: codeOf(cause) })
}

/** Whether the server's certificate is not the one to trust: that takes another certificate or other options. */
export function isDistrust(cause: unknown): boolean {
  return (
    cause instanceof Error &&
    /certificate|fingerprint/i.test(cause.message) &&
    refusedOurs(cause) === undefined
  )
}

/** Whether TLS was spoken to a port that speaks none. */
export function isPlainPort(cause: unknown): boolean {
  return cause instanceof Error && codeOf(cause) !== '' && NO_TLS.test(cause.message)
}

/** In which words the other end refused our client certificate, or that there is none; undefined where it did not. */
export function refusedOurs(cause: unknown): string | undefined {
  return cause instanceof Error ? REFUSES_OURS.exec(cause.message)?.[1] : undefined
}

/** What to do about {@link refusedOurs}. */
export function wantsOurs(refused: string): string {
  return `it refuses the client certificate, or that there is none ('${refused}'): give one that it trusts as tls.cert and tls.key`
}

/**
 * What to say of a connection that the other end closed before it answered anything; empty for any other failure. With
 * TLS 1.3 it refuses a client certificate when the connection is open already, and undici does not tell its alert.
 */
export function whyClosed(cause: unknown, { tls }: { readonly tls?: Tls | undefined }): string {
  const { socket } = cause as { readonly socket?: { readonly bytesRead?: number } }
  if (codeOf(cause) !== 'UND_ERR_SOCKET' || socket?.bytesRead !== 0) return ''
  const given = tls?.cert === undefined ? 'there is none' : 'not the given one'
  return `; it was closed before it answered: if a client certificate is wanted (${given}), give one that it trusts as tls.cert and tls.key`
}

const CONNECT_CODES = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EACCES',
  'UND_ERR_CONNECT_TIMEOUT',
])

/**
 * Drops the parser's error data: it carries the bytes that could not be read, and could print a password or token
 * that the peer repeated.
 */
export function withoutReply(cause: unknown): unknown {
  if (!(cause instanceof Error) || !('data' in cause)) return cause
  const { name, message } = cause
  return Object.assign(new Error(message), { name, code: codeOf(cause) })
}

/** What to check, by the reason why no connection was made. */
const CONNECT_WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there, check host and port',
  ENOTFOUND: 'there is no such host, check its name',
  EHOSTUNREACH: 'no route leads there, check the address and firewalls',
  ENETUNREACH: 'no route leads there, check the address and firewalls',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'reach it by a name of its certificate, or give that name as tls.servername',
}

/** The HTTP parser's error if the peer speaks another protocol. */
const NO_HTTP = /does not match the HTTP/i

export function codeOf(cause: unknown): string {
  return cause instanceof Error ? ((cause as NodeJS.ErrnoException).code ?? '') : ''
}

/** Describes TLS to a plain port, or the other way round. */
export function isOtherProtocol(cause: unknown): boolean {
  return isPlainPort(cause) || (cause instanceof Error && NO_HTTP.test(cause.message))
}

export function inWords(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause)
  if (isPlainPort(cause)) {
    return 'what listens there does not speak TLS, expected an https port, or an http:// URL for this one'
  }
  if (isOtherProtocol(cause)) {
    return 'the answer is not HTTP, expected an http port, or an https:// URL for this one'
  }
  const where = CONNECT_WORDS[codeOf(cause)]
  if (where !== undefined) return `${cause.message}, ${where}`
  return cause.message || codeOf(cause) || cause.name
}

/** Whether the failure came before a byte of the request was sent: only then is a repeat always safe. */
export function neverSent(cause: unknown): boolean {
  if (!(cause instanceof Error)) return false
  const code = codeOf(cause)
  if (CONNECT_CODES.has(code) || code.startsWith('ERR_TLS_')) return true
  if (isDistrust(cause) || isPlainPort(cause)) return true
  return cause instanceof AggregateError && cause.errors.every(neverSent)
}

/** Whether it takes other options, rights or certificates. */
export function isLasting(cause: unknown): boolean {
  return isDistrust(cause) || isOtherProtocol(cause) || codeOf(cause) === 'EACCES'
}
