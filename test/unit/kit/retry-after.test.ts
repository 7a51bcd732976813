import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import type { Clock } from 'drainable/provider'
import { HttpClient } from '../../../src/kit/http.js'
import { ioClock, type IoClock } from '../../support/io-clock.js'

type Answer = readonly [status: number, headers?: Record<string, string>]

interface Rig extends AsyncDisposable {
  readonly clock: IoClock
  /** When each request came, by the clock. */
  readonly came: readonly number[]
  call(timeout?: number, signal?: AbortSignal, until?: number, by?: Clock): Promise<number>
}

/** A server that gives these answers one after the other, the last one again and again. */
async function rig(...answers: readonly Answer[]): Promise<Rig> {
  const clock = ioClock()
  const came: number[] = []
  const server = createServer((_request, response: ServerResponse) => {
    const [status, headers] = answers[Math.min(came.length, answers.length - 1)]!
    came.push(clock.now())
    response.writeHead(status, headers).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = new HttpClient({ provider: 'test', url: `http://127.0.0.1:${port}` })
  return {
    clock,
    came,
    call: async (timeout, signal = new AbortController().signal, until?: number, by = clock) => {
      const limit = { ...(timeout === undefined ? {} : { timeout }), until }
      const reply = client.call({ method: 'GET', path: '/', clock: by, signal, ...limit })
      return (await clock.run(reply)).status
    },
    async [Symbol.asyncDispose]() {
      await client.close()
      server.close()
      clock[Symbol.dispose]()
    },
  }
}

const after = (value: string, status = 503): Answer => [status, { 'retry-after': value }]

test.each([
  ['seconds', after('5'), 5_000],
  ['seconds of a 429', after('5', 429), 5_000],
  ['a date that has passed', after('Thu, 26 Nov 2015 11:00:00 GMT'), 0],
  ['no number', after('soon'), 0],
  ['a number below 0', after('-5'), 0],
])('Retry-After with %s is waited for by the next call', async (_what, refusal, wait) => {
  await using it = await rig(refusal, [200])
  expect(await it.call()).toBe(refusal[0])
  expect(await it.call()).toBe(200)
  expect(it.came[1]! - it.came[0]!).toBe(wait)
})

test('Retry-After is waited for to its end where a timer fires a little early', async () => {
  await using it = await rig(after('3'), [200])
  const { clock } = it
  const early: Clock = {
    now: () => clock.now(),
    setTimeout: (fn, ms) => clock.setTimeout(fn, ms > 1 ? ms - 0.5 : ms),
  }
  await it.call(undefined, undefined, undefined, early)
  expect(await it.call(undefined, undefined, undefined, early)).toBe(200)
  expect(it.came[1]! - it.came[0]!).toBeGreaterThanOrEqual(3_000)
})

test('Retry-After with a date is waited for by the next call', async () => {
  const date = new Date(Date.now() + 8_000).toUTCString()
  await using it = await rig(after(date), [200])
  await it.call()
  await it.call()
  const wait = it.came[1]! - it.came[0]!
  expect(wait).toBeGreaterThan(4_000)
  expect(wait).toBeLessThanOrEqual(8_000)
})

test('Retry-After is over as soon as an answer is given without it', async () => {
  await using it = await rig(after('9'), [200])
  await it.call()
  await it.call()
  await it.call()
  expect(it.came[2]).toBe(it.came[1])
})

test('Retry-After of an hour keeps no undo of 30 s from its tries', async () => {
  await using it = await rig(after('3600'))
  for (let i = 0; i < 4; i += 1) await it.call()
  expect(it.came.filter((at) => at <= 31_000).length).toBeGreaterThanOrEqual(3)
})

test('Retry-After does not hold back a call with a short limit of its own', async () => {
  await using it = await rig(after('9'), [200])
  await it.call()
  expect(await it.call(2_000)).toBe(200)
  expect(it.came[1]).toBe(it.came[0])
})

test('Retry-After beyond 12 s refuses a call that has more time, unsent', async () => {
  await using it = await rig(after('40'), [200])
  await it.call()
  await expect(it.call(undefined, undefined, 120_000)).rejects.toMatchObject({
    code: 'UNREACHABLE',
    retryable: true,
    retryAfter: 28_000,
    message: expect.stringContaining('asked for no request for another 28 s') as string,
  })
  expect(it.came).toHaveLength(1)
})

test('Retry-After leaves a call the time for its last try', async () => {
  await using it = await rig(after('40'), [200])
  await it.call()
  await expect(it.call(undefined, undefined, 30_000)).rejects.toThrow('asked for no request')
  expect(await it.call(undefined, undefined, 30_000)).toBe(200)
  expect(it.came[1]! - it.came[0]!).toBe(15_000)
})

test('Retry-After is believed for 60 s at most', async () => {
  await using it = await rig(after('3600'), [200])
  await it.call()
  for (let i = 0; i < 4; i += 1)
    await expect(it.call(undefined, undefined, Infinity)).rejects.toThrow('asked for no request')
  expect(await it.call(undefined, undefined, Infinity)).toBe(200)
  expect(it.came[1]! - it.came[0]!).toBe(60_000)
})

test('a call that waits for Retry-After ends with its signal', async () => {
  await using it = await rig(after('9'), [200])
  await it.call()
  const stop = new AbortController()
  const call = it.call(undefined, stop.signal)
  const reason = new Error('enough')
  stop.abort(reason)
  await expect(call).rejects.toBe(reason)
  expect(it.came).toHaveLength(1)
})

test('a compressed answer is refused by name, and none of it is shown', async () => {
  await using it = await rig([200, { 'content-encoding': 'gzip' }])
  await expect(it.call()).rejects.toMatchObject({
    code: 'MALFORMED_REPLY',
    message: expect.stringContaining('compressed (gzip)') as string,
  })
})
