import { once } from 'node:events'
import { createServer as createPlain, type RequestListener, type Server } from 'node:http'
import { createServer as createTls } from 'node:https'
import { type AddressInfo, createServer } from 'node:net'
import { expect, test } from 'vitest'
import { HttpClient } from '../../../src/kit/http.js'
import { systemClock } from '../../../src/provider/clock.js'
import { selfSignedCertificate } from '../../../src/testing/tls-certificate.js'

const yes: RequestListener = (_, response) => void response.end('yes')

async function listening(server: Server) {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function refusal(url: string): Promise<Error> {
  await using client = new HttpClient({ provider: 'test', url })
  const { signal } = new AbortController()
  const call = client.call({ method: 'GET', path: '/', clock: systemClock, signal })
  return await call.then(
    () => expect.unreachable(),
    (error: unknown) => error as Error,
  )
}

test('an unknown issuer: the fingerprint that was shown, and our own options', async () => {
  const { key, cert, fingerprint256 } = selfSignedCertificate()
  await using server = await listening(createTls({ key, cert }, yes))
  const error = await refusal(`https://127.0.0.1:${server.port}`)
  expect(error).toMatchObject({ code: 'UNREACHABLE', retryable: false })
  expect(error.message).toContain('tls.ca')
  expect(error.message).toContain(`tls.fingerprint256: '${fingerprint256}'`)
  expect(error.message).not.toContain('--use-system-ca')
})

test('https to a plain port is told so', async () => {
  await using server = await listening(createPlain(yes))
  const error = await refusal(`https://127.0.0.1:${server.port}`)
  expect(error).toMatchObject({ code: 'UNREACHABLE', retryable: false })
  expect(error.message).toMatch(/does not speak TLS, expected an https port, or an http:\/\/ URL/)
})

test('http to a TLS port that answers with an alert is told so', async () => {
  const server = createServer((socket) => socket.resume().end(Buffer.from('15030300020246', 'hex')))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const error = await refusal(`http://127.0.0.1:${port}`)
  expect(error).toMatchObject({ code: 'MALFORMED_REPLY', retryable: false })
  expect(error.message).toMatch(/not HTTP, expected an http port, or an https:\/\/ URL/)
  await new Promise((resolve) => server.close(resolve))
})
