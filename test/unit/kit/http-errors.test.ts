import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { MockAgent } from 'undici'
import { expect, test } from 'vitest'
import { HttpClient } from '../../../src/kit/http.js'
import { systemClock } from '../../../src/provider/clock.js'

const failure = (message: string, code?: string): Error =>
  Object.assign(new Error(message), code === undefined ? {} : { code })

/** A client whose only call fails like that. */
function failing(error: Error) {
  const dispatcher = new MockAgent()
  dispatcher.disableNetConnect()
  dispatcher.get('https://lb.test').intercept({ path: '/' }).replyWithError(error)
  const client = new HttpClient({ provider: 'test', url: 'https://lb.test', dispatcher })
  const { signal } = new AbortController()
  return {
    call: () => client.call({ method: 'GET', path: '/', clock: systemClock, signal }),
    async [Symbol.asyncDispose]() {
      await client.close()
      await dispatcher.close()
    },
  }
}

/** `retryable`: the same call can succeed later without any change of options or certificates. */
test.each([
  [failure('connect ECONNREFUSED 10.0.0.1:443', 'ECONNREFUSED'), 'UNREACHABLE', true],
  [failure('getaddrinfo ENOTFOUND lb', 'ENOTFOUND'), 'UNREACHABLE', true],
  [failure('read ECONNRESET', 'ECONNRESET'), 'CONNECTION_LOST', true],
  [failure('connect EACCES /run/api.sock', 'EACCES'), 'UNREACHABLE', false],
  [failure('self-signed certificate', 'DEPTH_ZERO_SELF_SIGNED_CERT'), 'UNREACHABLE', false],
  [failure('certificate has expired', 'CERT_HAS_EXPIRED'), 'UNREACHABLE', false],
  [failure('the server has another fingerprint'), 'UNREACHABLE', false],
])('%s', async (error, code, retryable) => {
  await using lb = failing(error)
  await expect(lb.call()).rejects.toMatchObject({ code, retryable })
})

test('a certificate of another name is told with what to do', async () => {
  const words = "Hostname/IP does not match certificate's altnames: Host: 10.0.0.1. is not cert's"
  await using lb = failing(failure(words, 'ERR_TLS_CERT_ALTNAME_INVALID'))
  await expect(lb.call()).rejects.toMatchObject({
    code: 'UNREACHABLE',
    retryable: false,
    message: expect.stringContaining('tls.servername') as string,
  })
})

/** A server without HTTP, which sends back what it was sent. */
test('the printed cause of a reply that is not HTTP has none of its bytes', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await using client = new HttpClient({ provider: 'test', url: `http://127.0.0.1:${port}` })
  const { signal } = new AbortController()
  const headers = { authorization: 'Basic b3BzOnA0c3M=' }
  const call = { method: 'POST', path: '/', headers, body: { password: 'p4ss-w0rd' } } as const
  const error: unknown = await client
    .call({ ...call, clock: systemClock, signal })
    .catch((thrown: unknown) => thrown)
  server.close()
  expect(error).toMatchObject({
    code: 'MALFORMED_REPLY',
    cause: { name: 'HTTPParserError' },
  })
  const printed = inspect(error, { depth: 20, showHidden: true })
  expect(printed).not.toMatch(/p4ss-w0rd|b3BzOnA0c3M/)
})
