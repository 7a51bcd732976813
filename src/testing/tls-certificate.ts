/**
 * A self-signed certificate for the HTTPS fakes, made at start: no key lies in the package, and none
 * expires there. Node signs but cannot write X.509, so the few DER types it takes are encoded here.
 *
 * DER (ITU-T X.690) in short: every value is tag, length, content. A length below 128 is one byte,
 * a longer one is 0x80 + the number of bytes that follow. INTEGER is signed: a leading bit of 1 takes
 * a zero byte before it. BIT STRING starts with the number of unused bits in its last byte.
 */
import { generateKeyPairSync, hash, randomBytes, sign, X509Certificate } from 'node:crypto'
import { isIP, isIPv4 } from 'node:net'

/** What {@link selfSignedCertificate} makes. */
export interface SelfSignedCertificate {
  /** Private key, PEM. */
  readonly key: string
  /** The certificate, PEM. */
  readonly cert: string
  /** What a client trusts: the certificate itself, PEM. */
  readonly ca: string
  /** SHA-256 fingerprint of the certificate, hex pairs with colons. */
  readonly fingerprint256: string
}

/** What the certificate says. */
export interface CertificateOptions {
  /** Host names and addresses it is for. Default: `localhost`, `127.0.0.1` and `::1`. */
  readonly names?: readonly string[]
  /** Common name. Default `drainable fake`. */
  readonly commonName?: string
  /** Days it is valid, from an hour ago. Default 7. */
  readonly days?: number
}

/** A fresh P-256 key and a certificate signed with it, to be trusted as it is. */
export function selfSignedCertificate(options: CertificateOptions = {}): SelfSignedCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const from = Date.now() - 3_600_000
  const until = from + (options.days ?? 7) * 86_400_000
  const name = sequence(set(sequence(oid('2.5.4.3'), utf8(options.commonName ?? 'drainable fake'))))
  const toBeSigned = sequence(
    tagged(0, integer(Buffer.from([2]))), // v3
    integer(randomBytes(16)),
    ecdsaSha256(),
    name,
    sequence(time(from), time(until)),
    name,
    spki,
    tagged(3, extensions(options.names ?? ['localhost', '127.0.0.1', '::1'], spki)),
  )
  const signature = sign('sha256', toBeSigned, privateKey)
  const cert = toPem('CERTIFICATE', sequence(toBeSigned, ecdsaSha256(), bitString(signature)))
  return {
    key: toPem('PRIVATE KEY', privateKey.export({ type: 'pkcs8', format: 'der' })),
    cert,
    ca: cert,
    fingerprint256: new X509Certificate(cert).fingerprint256,
  }
}

/** Followed by .1 for the authentication of servers, .2 of clients. */
const USAGE = '1.3.6.1.5.5.7.3'

/**
 * Those that strict verifiers ask for, and no more: rustls takes no authority as a server's
 * certificate, and OpenSSL sees a self-signed one as such only if its key usage, where it has one,
 * allows signing certificates. So it is no authority and has no key usage.
 */
function extensions(names: readonly string[], spki: Buffer): Buffer {
  const keyId = hash('sha1', spki.subarray(-65), 'buffer') // of the bare public point
  return sequence(
    extension('2.5.29.19', true, sequence()), // basicConstraints: no authority
    extension('2.5.29.37', false, sequence(oid(`${USAGE}.1`), oid(`${USAGE}.2`))), // extKeyUsage
    extension('2.5.29.14', false, der(0x04, keyId)), // subjectKeyIdentifier
    extension('2.5.29.35', false, sequence(der(0x80, keyId))), // authorityKeyIdentifier
    extension('2.5.29.17', false, sequence(...names.map(alternativeName))),
  )
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return sequence(oid(id), ...(critical ? [boolean(true)] : []), der(0x04, value))
}

/** GeneralName: [2] is a DNS name, [7] the 4 or 16 bytes of an address. */
function alternativeName(name: string): Buffer {
  return isIP(name) === 0 ? der(0x82, Buffer.from(name)) : der(0x87, addressBytes(name))
}

function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number))
  const [head = '', tail] = address.split('::')
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'))
  const before = groups(head)
  const after = groups(tail ?? '')
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length
  const all = [...before, ...Array.from({ length: zeros }, () => '0'), ...after]
  return Buffer.from(all.map((group) => group.padStart(4, '0')).join(''), 'hex')
}

function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content)
  return Buffer.concat([Buffer.from([tag, ...lengthBytes(body.length)]), body])
}

function lengthBytes(length: number): number[] {
  if (length < 0x80) return [length]
  const bytes: number[] = []
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256)
  return [0x80 + bytes.length, ...bytes]
}

const sequence = (...items: readonly Uint8Array[]): Buffer => der(0x30, ...items)
const set = (...items: readonly Uint8Array[]): Buffer => der(0x31, ...items)
const tagged = (n: number, ...items: readonly Uint8Array[]): Buffer => der(0xa0 + n, ...items)
const utf8 = (text: string): Buffer => der(0x0c, Buffer.from(text))
const boolean = (value: boolean): Buffer => der(0x01, Buffer.from([value ? 0xff : 0]))
const bitString = (bytes: Uint8Array): Buffer => der(0x03, Buffer.from([0]), bytes)

/** A positive one; leading zero bytes go, as DER wants the shortest form. */
function integer(bytes: Uint8Array): Buffer {
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start += 1
  const short = bytes.subarray(start)
  return der(0x02, ...((short[0] ?? 0) >= 0x80 ? [Buffer.from([0]), short] : [short]))
}

/** UTCTime, as RFC 5280 wants it before 2050: `YYMMDDhhmmssZ`. */
function time(at: number): Buffer {
  const text = new Date(at).toISOString().replace(/[-:T]|\.\d+/g, '')
  return der(0x17, Buffer.from(text.slice(2)))
}

function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return der(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]))
}

/** Seven bits a byte, all but the last with the high bit set. */
function base128(value: number): number[] {
  const bytes = [value % 128]
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) {
    bytes.unshift((rest % 128) + 128)
  }
  return bytes
}

const ecdsaSha256 = (): Buffer => sequence(oid('1.2.840.10045.4.3.2'))

function toPem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}
