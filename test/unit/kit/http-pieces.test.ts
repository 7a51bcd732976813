import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { HttpClient, type HttpCall } from '../../../src/kit/http.js'
import { systemClock } from '../../../src/provider/clock.js'

const TEXT = 'näch'.repeat(100_000)

async function served(status: number) {
  const server = createServer((_, response) => void response.writeHead(status).end(TEXT))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = new HttpClient({ provider: 'test', url: `http://127.0.0.1:${port}` })
  return {
    call: (take: NonNullable<HttpCall['take']>) =>
      client.call({
        method: 'GET',
        path: '/',
        clock: systemClock,
        signal: AbortSignal.timeout(20_000),
        take,
      }),
    [Symbol.asyncDispose]: async () => {
      await client.close()
      server.closeAllConnections()
      server.close()
    },
  }
}

test('a body is handed over in pieces, and no character is cut', async () => {
  await using it = await served(200)
  let text = ''
  let pieces = 0
  let isBusy = false
  const reply = await it.call(async (piece) => {
    expect(isBusy).toBe(false)
    isBusy = true
    await new Promise((resolve) => setImmediate(resolve))
    isBusy = false
    text += piece
    pieces += 1
  })
  expect(text).toBe(TEXT)
  expect(pieces).toBeGreaterThan(1)
  expect(reply.text).toBe('')
})

test('an answer of another status is handed over whole', async () => {
  await using it = await served(403)
  const reply = await it.call(() => expect.fail('nothing is handed over'))
  expect(reply).toMatchObject({ status: 403, text: TEXT })
})

test('an error about a piece is passed on unchanged', async () => {
  await using it = await served(200)
  const refusal = new TypeError('not this')
  await expect(it.call(() => Promise.reject(refusal))).rejects.toBe(refusal)
})
