import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import { expect, test } from 'vitest'
import { selfSignedCertificate } from '../../../src/testing/tls-certificate.js'
import { context } from '../../support/dataplane.js'
import { failing } from './faults/set-up.js'

test.each([
  ['TLSv1.2', 'UNAUTHENTICATED'],
  ['TLSv1.3', 'CONNECTION_LOST'],
] as const)(
  'an API that wants a client certificate is told by tls.cert: %s',
  async (version, code) => {
    const { key, cert, ca } = selfSignedCertificate()
    const server = createServer({ key, cert, ca, requestCert: true, maxVersion: version })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    try {
      const url = `https://127.0.0.1:${port}`
      const user = { username: 'admin', password: 'secret' }
      await using lb = haproxyDataplane({ url, ...user, tls: { insecure: true } })
      const error = await failing(lb.describe(context()))
      expect(error.code).toBe(code)
      expect(error.message).toContain('tls.cert')
    } finally {
      server.close()
      server.closeAllConnections()
    }
  },
)
