import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { envoy, restEndpoints } from 'drainable/envoy'
import { listenRest, type RestLimits } from '../../../../src/adapters/envoy/sources/rest-server.js'

const LIMITS: RestLimits = { connections: 100, request: 30_000, answer: 30_000 }
/** More than the buffers of both sockets take. */
const LARGE = 'x'.repeat(16 * 1024 * 1024)
const HEAD = 'POST /v3/discovery:endpoints HTTP/1.1\r\nhost: x\r\n'
const POLL = `${HEAD}content-length: 2\r\n\r\n{}`

async function serve(limits: Partial<RestLimits>, text = 'small') {
  const asked: Socket[] = []
  const answer = (_: unknown, socket: Socket) => {
    asked.push(socket)
    return { status: 200, body: { text } } as const
  }
  const server = await listenRest(answer, { host: '127.0.0.1', port: 0 }, { ...LIMITS, ...limits })
  const sockets: Socket[] = []
  return {
    /** Of the server's side, by poll. */
    asked,
    open: () => {
      const socket = connect(server.address.port, '127.0.0.1')
      socket.on('error', () => undefined)
      sockets.push(socket)
      return socket
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      await server.close()
    },
  }
}

async function said(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (data: Buffer) => (text += data.toString('latin1')))
  await once(socket, 'close')
  return text
}

test('one REST connection too many is told so, until another one leaves', async () => {
  await using it = await serve({ connections: 2 })
  const known = [it.open(), it.open()]
  for (const socket of known) {
    socket.write(POLL)
    const [first] = (await once(socket, 'data')) as [Buffer]
    expect(first.toString()).toContain('200 OK')
  }
  const refused = it.open()
  refused.write(POLL)
  expect(await said(refused)).toMatch(/^HTTP\/1\.1 503 [^]*more than 2 connections$/)
  known[0]?.destroy()
  await expect
    .poll(async () => {
      const next = it.open()
      next.write(POLL)
      const [first] = (await once(next, 'data')) as [Buffer]
      next.destroy()
      return first.toString()
    })
    .toContain('200 OK')
})

test('an unfinished REST request is given up', async () => {
  await using it = await serve({ request: 100 })
  const slow = it.open()
  slow.write(`${HEAD}content-length: 100\r\n\r\n{`)
  expect(await said(slow)).toContain('408 Request Timeout')
})

test('a REST client that never reads its answer loses its connection', async () => {
  await using it = await serve({ answer: 100 }, LARGE)
  const deaf = it.open()
  deaf.pause()
  deaf.write(POLL)
  await expect.poll(() => it.asked.map(({ destroyed }) => destroyed)).toEqual([true])
})

test.each([
  ['another path', 'GET', '/', '', 404, 'expected POST /v3/discovery:endpoints'],
  ['no JSON', 'POST', '/v3/discovery:endpoints', '{"node', 400, 'DiscoveryRequest'],
  ['names that are none', 'POST', '/v3/discovery:endpoints', '{"resource_names":7}', 400, 'names'],
  [
    'a node.id without end',
    'POST',
    '/v3/discovery:endpoints',
    JSON.stringify({ node: { id: 'x'.repeat(9_000) }, resource_names: ['web'] }),
    400,
    'node.id is longer than',
  ],
  [
    'a request of 5 MB',
    'POST',
    '/v3/discovery:endpoints',
    JSON.stringify({ resource_names: ['x'.repeat(5_000_000)] }),
    413,
    'more than 4194304 bytes',
  ],
])('%s is refused in words', async (_, method, path, body, status, words) => {
  const host = { address: { socket_address: { address: '127.0.0.1', port_value: 80 } } }
  const initial = [{ cluster_name: 'web', endpoints: [{ lb_endpoints: [{ endpoint: host }] }] }]
  const sink = restEndpoints({ port: 0, initial })
  await using lb = envoy({ endpoints: sink, admin: ['http://127.0.0.1:1'] })
  await sink.load({ held: () => Promise.resolve([]) }, AbortSignal.timeout(5_000))
  expect(lb.name).toBe('envoy')
  const url = `http://127.0.0.1:${sink.address?.port}${path}`
  const reply = await fetch(url, { method, ...(method === 'POST' ? { body } : {}) })
  expect(reply.status).toBe(status)
  expect(await reply.text()).toContain(words)
})
