/** A provider that is closed while a call is under way: mostly the caller forgot an `await`, so every adapter says that. */
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { drain, type DrainableProvider } from 'drainable'
import { fakeProvider } from 'drainable/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { adapterNames } from '../../../scripts/package/entries.ts'
import type { GivenOptions } from '../../support/given-options.js'
import { ctx } from '../f5-bigip/rig.js'

const given = await Promise.all(
  adapterNames().map(async (name) => {
    const file = new URL(`../${name}/given-options.ts`, import.meta.url).href
    // Its first factory makes the provider.
    const [first] = ((await import(/* @vite-ignore */ file)) as { given: GivenOptions[] }).given
    return first as GivenOptions
  }),
)

const closed = {
  name: 'DrainableError',
  code: 'CONNECTION_LOST',
  retryable: false,
  message: expect.stringMatching(
    /: this provider was closed before the call ended: is an `await` missing\?$/,
  ) as string,
}

describe('a call after the close asks for the missing await', () => {
  test.each(given)('%s', async (_, options, __, make) => {
    const lb = make(options as never) as DrainableProvider
    await lb.close()
    await expect(lb.observe('all', ctx())).rejects.toMatchObject(closed)
  })
})

describe('a call that is under way at the close says the same', () => {
  /** It takes every connection and says nothing. */
  let server: Server
  const sockets = new Set<Socket>()

  beforeAll(async () => {
    server = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => undefined)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
  })

  afterAll(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })

  // Not those that wait at the close for a login under way, to end its session, or that read endpoint sets first.
  test.each(given.filter(([, options]) => !('username' in options || 'endpoints' in options)))(
    '%s',
    async (_, options, __, make) => {
      const at = `127.0.0.1:${(server.address() as AddressInfo).port}`
      const place = 'socket' in options ? { socket: at } : { admin: `http://${at}` }
      const lb = make({ ...options, ...place } as never) as DrainableProvider
      const arrived = once(server, 'connection')
      const call = lb.describe(ctx())
      call.catch(() => undefined)
      await arrived
      await lb.close()
      await expect(call).rejects.toMatchObject(closed)
    },
  )

  test('a drain', async () => {
    const web1 = { pool: 'web', member: 'web1' }
    const lb = fakeProvider({ pools: { web: ['web1', 'web2'] } })
    lb.occupy(web1)
    const call = drain(lb, web1)
    call.catch(() => undefined)
    await new Promise((resolve) => setImmediate(resolve))
    await lb.close()
    await expect(call).rejects.toMatchObject(closed)
  })
})
