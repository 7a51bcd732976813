import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { selfSignedCertificate } from '../../../src/testing/tls-certificate.js'
import { HttpClient } from '../../../src/kit/http.js'
import { systemClock } from '../../../src/provider/clock.js'

test('a pinned certificate is checked on resumed connections too', async () => {
  const { key, cert, fingerprint256 } = selfSignedCertificate()
  const server = createServer({ key, cert }, (_, response) => {
    response.writeHead(200, { connection: 'close' }).end('yes')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await using client = new HttpClient({
    provider: 'test',
    url: `https://127.0.0.1:${port}`,
    tls: { fingerprint256 },
  })
  const { signal } = new AbortController()
  for (let i = 0; i < 4; i++) {
    expect((await client.call({ method: 'GET', path: '/', clock: systemClock, signal })).text).toBe(
      'yes',
    )
  }
  await new Promise((resolve) => server.close(resolve))
})
