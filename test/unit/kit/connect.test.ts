import { once } from 'node:events'
import { createServer as createPlain } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { describe, expect, test } from 'vitest'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { fakeClock } from 'drainable/testing'
import { HttpClient } from '../../../src/kit/http.js'
import { selfSignedCertificate } from '../../../src/testing/tls-certificate.js'

const { key, cert } = selfSignedCertificate()

/** A port that takes connections; what becomes of each is said by its number, from 0. */
async function port(take: (socket: Socket, nth: number) => void) {
  const open = new Set<Socket>()
  let count = 0
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    socket.on('error', () => undefined)
    take(socket, count++)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    number: (server.address() as AddressInfo).port,
    open,
    get taken() {
      return count
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** The first connection gets a handshake; the ones after it wait for ever. */
const shownOnce = (): Promise<Awaited<ReturnType<typeof port>>> =>
  port((socket, nth) => {
    if (nth === 0) new TLSSocket(socket, { isServer: true, key, cert }).on('error', () => undefined)
    else socket.resume()
  })

const silent = (): Promise<Awaited<ReturnType<typeof port>>> => port((socket) => socket.resume())

interface Call {
  readonly end: Promise<unknown>
  readonly stop: AbortController
}

/** By a clock that stands still no connection is late, and no limit ends a call: only what the test does. */
function get(client: HttpClient, clock = fakeClock(), timeout?: number): Call {
  const stop = new AbortController()
  const limit = timeout === undefined ? {} : { timeout }
  const end = client
    .call({ method: 'GET', path: '/', clock, signal: stop.signal, ...limit })
    .catch((error: unknown) => error)
  return { end, stop }
}

const client = ({ number }: { number: number }, scheme = 'https'): HttpClient =>
  new HttpClient({ provider: 'test', url: `${scheme}://127.0.0.1:${number}` })

describe('a connection that can not be made', () => {
  test('ends by the clock of its call, and nothing was sent', async () => {
    await using there = await silent()
    await using http = client(there)
    const clock = fakeClock()
    const { end } = get(http, clock)
    await expect.poll(() => there.open.size).toBe(1)
    await clock.advance(4_999)
    expect(there.open.size).toBe(1)
    await clock.advance(1)
    expect(await end).toMatchObject({ code: 'UNREACHABLE', retryable: true })
    expect(String(await end)).toContain('no connection within 5000 ms')
    await expect.poll(() => there.open.size).toBe(0)
    expect(clock.pending).toBe(0)
  })

  test('is given up with the last call that waits for it', async () => {
    await using there = await silent()
    await using http = client(there)
    const clock = fakeClock()
    const calls = [get(http, clock), get(http, clock)]
    await expect.poll(() => there.open.size).toBeGreaterThan(0)
    calls[0]!.stop.abort(new Error('first'))
    expect(await calls[0]!.end).toMatchObject({ message: 'first' })
    expect(there.open.size).toBeGreaterThan(0)
    calls[1]!.stop.abort(new Error('second'))
    expect(await calls[1]!.end).toMatchObject({ message: 'second' })
    await expect.poll(() => there.open.size).toBe(0)
  })

  test('keeps no call beyond its time while another one waits', async () => {
    await using there = await silent()
    await using http = client(there)
    const clock = fakeClock()
    const [hasty, patient] = [get(http, clock, 1_000), get(http, clock)]
    await expect.poll(() => there.open.size).toBeGreaterThan(0)
    await clock.advance(1_000)
    expect(await hasty.end).toMatchObject({ code: 'CALL_TIMEOUT' })
    expect(there.open.size).toBeGreaterThan(0)
    patient.stop.abort(new Error('second'))
    expect(await patient.end).toMatchObject({ message: 'second' })
    await expect.poll(() => there.open.size).toBe(0)
  })

  test('is given up when the client is closed', async () => {
    await using there = await silent()
    const http = client(there)
    const { end } = get(http)
    await expect.poll(() => there.open.size).toBe(1)
    await http.close()
    expect(await end).toMatchObject({ code: 'CONNECTION_LOST' })
    await expect.poll(() => there.open.size).toBe(0)
  })

  test('does not fail a call that comes after it was given up', async () => {
    let answers = false
    const server = createPlain((_, response) => void response.end('yes'))
    await using there = await port((socket) => {
      if (answers) server.emit('connection', socket)
      else socket.resume()
    })
    // One connection, so that both calls wait for the same.
    await using http = new HttpClient({
      provider: 'test',
      url: `http://127.0.0.1:${there.number}`,
      connections: 1,
    })
    const first = get(http)
    first.stop.abort(new Error('enough'))
    answers = true
    const second = get(http)
    expect(await first.end).toMatchObject({ message: 'enough' })
    expect(await second.end).toMatchObject({ status: 200, text: 'yes' })
  })
})

describe('the look at an untrusted certificate', () => {
  test('ends by the clock of its call', async () => {
    await using there = await shownOnce()
    await using http = client(there)
    const clock = fakeClock()
    const { end } = get(http, clock)
    await expect.poll(() => there.taken).toBe(2)
    await clock.advance(2_000)
    expect(await end).toMatchObject({ code: 'UNREACHABLE', retryable: false })
    await expect.poll(() => there.open.size).toBe(0)
    expect(clock.pending).toBe(0)
  })

  test('ends with the abort of its call', async () => {
    await using there = await shownOnce()
    await using http = client(there)
    const { end, stop } = get(http)
    await expect.poll(() => there.taken).toBe(2)
    stop.abort(new Error('enough'))
    expect(await end).toMatchObject({ message: 'enough' })
    await expect.poll(() => there.open.size).toBe(0)
  })

  test('ends with the close of the client', async () => {
    await using there = await shownOnce()
    const http = client(there)
    const { end } = get(http)
    await expect.poll(() => there.taken).toBe(2)
    await http.close()
    expect(await end).toMatchObject({ code: 'CONNECTION_LOST' })
    await expect.poll(() => there.open.size).toBe(0)
  })

  test.each(['abort', 'close'] as const)('ends with the %s of a Runtime API too', async (how) => {
    await using there = await shownOnce()
    await using lb = haproxyRuntime({ socket: `127.0.0.1:${there.number}`, tls: {} })
    const stop = new AbortController()
    const end = lb.describe({ clock: fakeClock(), signal: stop.signal }).catch((e: unknown) => e)
    await expect.poll(() => there.taken).toBe(2)
    if (how === 'abort') stop.abort(new Error('enough'))
    else await lb.close()
    expect(String(await end)).toMatch(how === 'abort' ? /enough/ : /closed/)
    await expect.poll(() => there.open.size).toBe(0)
  })
})
