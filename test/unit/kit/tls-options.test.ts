import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { citrixAdc } from 'drainable/citrix-adc'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { f5Bigip } from 'drainable/f5-bigip'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import type { Tls } from 'drainable/provider'
import { readPem } from '../../../src/kit/tls.js'
import { selfSignedCertificate } from '../../../src/testing/tls-certificate.js'

const { cert, key } = selfSignedCertificate()
const login = { url: 'https://127.0.0.1:1', username: 'admin', password: 'secret' }
/** A key in another form: base64 without its lines. */
const BARE = key.replaceAll(/-----[^-]+-----|\n/g, '')

const adapters: [string, (tls: Tls) => unknown][] = [
  ['f5Bigip', (tls) => f5Bigip({ ...login, tls })],
  ['citrixAdc', (tls) => citrixAdc({ ...login, tls })],
  ['haproxyDataplane', (tls) => haproxyDataplane({ ...login, tls })],
  ['grpcEndpoints', ({ cert = '', key = '' }) => grpcEndpoints({ port: 0, tls: { cert, key } })],
]

function refusal(make: () => unknown): Error {
  try {
    make()
  } catch (error) {
    return error as Error
  }
  return expect.unreachable()
}

describe.each(adapters)('%s', (_, make) => {
  test.each([
    ['in base64', BARE],
    ['cut', BARE.slice(0, 40)],
    ['in lines', key.replaceAll(/-----[^-]+-----/g, '')],
  ])('an invalid PEM key is never printed, %s', (_form, given) => {
    const error = refusal(() => make({ cert, key: given }))
    expect(error).toMatchObject({ code: 'INVALID_OPTIONS' })
    expect(error.message).toMatch(/tls\.key: expected PEM text/)
    expect(inspect(error, { depth: 9 })).not.toContain(given.trim().slice(0, 20))
  })

  test('nor is a key in the place of the certificate', () => {
    const error = refusal(() => make({ cert: BARE, key }))
    expect(error.message).toMatch(/tls\.cert: expected PEM text/)
    expect(inspect(error, { depth: 9 })).not.toContain(BARE.slice(0, 20))
  })
})

test.each(adapters.slice(0, 3))(
  '%s: the key of another certificate is refused at once',
  (_, make) => {
    const error = refusal(() => make({ cert, key: selfSignedCertificate().key }))
    expect(error).toMatchObject({ code: 'INVALID_OPTIONS' })
    expect(error.message).toMatch(/^tls: expected PEM texts that fit together/)
  },
)

test.each(adapters.slice(0, 3))('%s: half a fingerprint is refused', (_, make) => {
  for (const fingerprint256 of ['abcd', 'ab:cd', 'ab'.repeat(16), 'ab:'.repeat(32)]) {
    const error = refusal(() => make({ fingerprint256 }))
    expect(error).toMatchObject({ code: 'INVALID_OPTIONS' })
    expect(error.message).toMatch(/tls\.fingerprint256: expected .* 32 pairs of hex digits/)
  }
})

test('a file without PEM text is named', () => {
  const folder = mkdtempSync(join(tmpdir(), 'drainable-pem-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'ca.pem')
  writeFileSync(path, 'nothing')
  expect(refusal(() => readPem(path, 'tls.ca')).message).toContain(`found no PEM text in '${path}'`)
  writeFileSync(path, cert)
  expect(readPem(path, 'tls.ca')).toBe(cert)
})
