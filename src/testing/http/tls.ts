import { X509Certificate } from 'node:crypto'
import { selfSignedCertificate, type SelfSignedCertificate } from '../tls-certificate.js'

/** The TLS of a fake: none, with a certificate made at its start, or with this one (PEM). */
export type FakeTls = boolean | { readonly key: string; readonly cert: string }

/** What a fake serves with, and what a client knows it by; undefined over plain HTTP. */
export function toServedTls(tls: FakeTls): SelfSignedCertificate | undefined {
  if (tls === false) return undefined
  if (tls === true) return selfSignedCertificate()
  const { key, cert } = tls
  return { key, cert, ca: cert, fingerprint256: new X509Certificate(cert).fingerprint256 }
}
