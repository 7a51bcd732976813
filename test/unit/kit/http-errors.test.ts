import { MockAgent } from 'undici'
import { expect, test } from 'vitest'
import { HttpClient } from '../../../src/kit/http.js'
import { systemClock } from '../../../src/provider/clock.js'

const failure = (message: string, code?: string): Error =>
  Object.assign(new Error(message), code === undefined ? {} : { code })

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
  const dispatcher = new MockAgent()
  dispatcher.disableNetConnect()
  dispatcher.get('https://lb.test').intercept({ path: '/' }).replyWithError(error)
  await using client = new HttpClient({ provider: 'test', url: 'https://lb.test', dispatcher })
  const { signal } = new AbortController()
  await expect(
    client.call({ method: 'GET', path: '/', clock: systemClock, signal }),
  ).rejects.toMatchObject({
    code,
    retryable,
  })
  await dispatcher.close()
})
