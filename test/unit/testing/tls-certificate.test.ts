import { X509Certificate } from 'node:crypto'
import { createServer } from 'node:https'
import { connect } from 'node:tls'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { selfSignedCertificate } from '../../../src/testing/tls-certificate.js'

test('the certificate is self-signed, of no authority, for loopback', () => {
  const made = selfSignedCertificate()
  const read = new X509Certificate(made.cert)
  expect(read.verify(read.publicKey)).toBe(true)
  expect(read.ca).toBe(false)
  expect(read.checkHost('localhost')).toBe('localhost')
  expect(read.checkIP('127.0.0.1')).toBe('127.0.0.1')
  expect(read.checkIP('::1')).toBe('::1')
  expect(read.checkHost('elsewhere')).toBeUndefined()
  expect(read.checkIssued(read)).toBe(true)
  expect(Date.parse(read.validFrom)).toBeLessThan(Date.now())
  expect(Date.parse(read.validTo)).toBeGreaterThan(Date.now() + 6 * 86_400_000)
  expect(made.fingerprint256).toBe(read.fingerprint256)
})

test('names and common name can be given, with IPv6 in any form', () => {
  const made = selfSignedCertificate({ names: ['lb.example', '2001:db8::7'], commonName: 'lb' })
  const read = new X509Certificate(made.cert)
  expect(read.subject).toBe('CN=lb')
  expect(read.checkIP('2001:db8:0:0:0:0:0:7')).toBeDefined()
  expect(read.checkHost('lb.example')).toBe('lb.example')
})

test('serial numbers differ, and a hundred certificates parse', () => {
  const serials = new Set<string>()
  for (let i = 0; i < 100; i += 1) {
    const read = new X509Certificate(selfSignedCertificate().cert)
    expect(read.verify(read.publicKey)).toBe(true)
    serials.add(read.serialNumber)
  }
  expect(serials.size).toBe(100)
})

test('a TLS client that trusts it connects, another one refuses', async () => {
  const { key, cert, ca } = selfSignedCertificate()
  const server = createServer({ key, cert }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const good = connect({ port, host: '127.0.0.1', ca })
  await once(good, 'secureConnect')
  expect(good.authorized).toBe(true)
  good.destroy()
  const bad = connect({ port, host: '127.0.0.1' })
  const [error] = (await once(bad, 'error')) as [NodeJS.ErrnoException]
  expect(error.code).toBe('DEPTH_ZERO_SELF_SIGNED_CERT')
  await new Promise((resolve) => server.close(resolve))
})
