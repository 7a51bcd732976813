import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { citrixAdc } from 'drainable/citrix-adc'
import { f5Bigip } from 'drainable/f5-bigip'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import type { DrainableProvider } from 'drainable/provider'
import { fakeClock } from 'drainable/testing'

/** Takes connections, and says nothing on any. */
async function silent() {
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    socket.on('error', () => undefined)
    socket.resume()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    open,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const user = { username: 'drainer', password: 'secret', tls: { insecure: true } } as const
const adapters: Record<string, (url: string, callTimeout: number) => DrainableProvider> = {
  f5Bigip: (url, callTimeout) => f5Bigip({ url, callTimeout, ...user }),
  haproxyDataplane: (url, callTimeout) => haproxyDataplane({ url, callTimeout, ...user }),
  citrixAdc: (url, callTimeout) => citrixAdc({ url, callTimeout, ...user }),
}

test.each(Object.entries(adapters))(
  'a call of %s ends with its callTimeout beside one that waits',
  async (_, make) => {
    await using there = await silent()
    await using lb = make(there.url, 1_000)
    const clock = fakeClock()
    const stop = new AbortController()
    const look = () => lb.describe({ clock, signal: stop.signal }).catch((error: unknown) => error)
    const first = look()
    await expect.poll(() => there.open.size).toBeGreaterThan(0)
    await clock.advance(500)
    const second = look()
    await clock.advance(500)
    expect(await first).toMatchObject({ code: 'CALL_TIMEOUT' })
    stop.abort(new Error('enough'))
    await second
    // A login whose answer may still come is waited for 2 s longer: it may have made a session.
    await clock.advance(2_000)
    await expect.poll(() => there.open.size).toBe(0)
  },
)
