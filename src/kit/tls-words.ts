/** What went wrong in a TLS handshake, told from the errors of node:tls and OpenSSL, in our options' names. */

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

function codeOf(cause: unknown): string {
  return cause instanceof Error ? ((cause as NodeJS.ErrnoException).code ?? '') : ''
}
