import { readFileSync } from 'node:fs'
import { checkServerIdentity, type ConnectionOptions, type PeerCertificate } from 'node:tls'
import { z } from 'zod'
import { DrainableError } from '../provider/error.js'
import type { Tls } from '../provider/contract.js'

/** The `tls` option of every adapter that speaks HTTPS. */
export const tlsSchema = z
  .strictObject({
    ca: z.string().min(1).exactOptional(),
    fingerprint256: z
      .string()
      .regex(
        /^([0-9a-f]{2}:?){2,32}$/i,
        'expected hex pairs of the SHA-256 fingerprint, with or without colons',
      )
      .exactOptional(),
    cert: z.string().min(1).exactOptional(),
    key: z.string().min(1).exactOptional(),
    servername: z.string().min(1).exactOptional(),
    insecure: z.literal(true).exactOptional(),
  })
  .refine((tls) => (tls.cert === undefined) === (tls.key === undefined), {
    message: 'cert and key go together',
  })

/**
 * What node:tls needs for these options.
 *
 * With a pinned fingerprint the chain is not asked for: the certificate itself is the trust, so
 * `rejectUnauthorized` is off and the pin is checked by `checkPinned` once the socket is secure.
 *
 * @throws `INVALID_OPTIONS` where a file named by the options cannot be read
 */
export function toTlsConnect(tls: Tls | undefined): ConnectionOptions {
  if (tls === undefined) return {}
  const options: ConnectionOptions = {}
  if (tls.ca !== undefined) options.ca = readPem(tls.ca, 'tls.ca')
  if (tls.cert !== undefined) options.cert = readPem(tls.cert, 'tls.cert')
  if (tls.key !== undefined) options.key = readPem(tls.key, 'tls.key')
  if (tls.servername !== undefined) options.servername = tls.servername
  if (tls.insecure === true || tls.fingerprint256 !== undefined) options.rejectUnauthorized = false
  else
    options.checkServerIdentity = (host, cert) => checkServerIdentity(tls.servername ?? host, cert)
  return options
}

/** The error of a connection whose certificate is not the pinned one; undefined where it is. */
export function checkPinned(tls: Tls | undefined, cert: PeerCertificate): Error | undefined {
  if (tls?.fingerprint256 === undefined || tls.insecure === true) return undefined
  const found = plain(cert.fingerprint256)
  if (found === plain(tls.fingerprint256)) return undefined
  return new Error(
    `the server's certificate has the SHA-256 fingerprint ${cert.fingerprint256}, tls.fingerprint256 names another`,
  )
}

function plain(fingerprint: string | undefined): string {
  return (fingerprint ?? '').replaceAll(':', '').toLowerCase()
}

function readPem(value: string, field: string): string {
  if (value.includes('-----BEGIN')) return value
  try {
    return readFileSync(value, 'utf8')
  } catch (cause) {
    throw new DrainableError(
      'INVALID_OPTIONS',
      `${field}: expected PEM text or the path of a readable PEM file, could not read '${value}'`,
      { cause },
    )
  }
}
