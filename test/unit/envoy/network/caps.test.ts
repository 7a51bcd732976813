import { Client, credentials, status, type ServiceError } from '@grpc/grpc-js'
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { bind, createServer } from '../../../../src/adapters/envoy/grpc/server.js'

const EDS = '/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints'
const LRS = '/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats'

test('all clients share one limit of streams, freed when one leaves', async () => {
  let open = 0
  const onStream = (stream: { once: (event: 'cancelled', fn: () => void) => unknown }) => {
    open += 1
    stream.once('cancelled', () => (open -= 1))
  }
  const server = createServer({ sotw: onStream, delta: onStream, loads: onStream }, 2)
  const listening = await bind(server, '127.0.0.1', 0, undefined)
  const { port } = listening.address
  const same = (value: Buffer): Buffer => value
  const clients: Client[] = []
  const ask = (path: string) => {
    // Of its own connection each.
    const options = { 'grpc.use_local_subchannel_pool': 1 }
    const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), options)
    clients.push(client)
    const stream = client.makeBidiStreamRequest(path, same, same)
    const ended = new Promise<number>((resolve) =>
      stream.on('error', (error: ServiceError) => resolve(error.code)),
    )
    return { stream, ended }
  }
  try {
    const first = ask(EDS)
    await expect.poll(() => open).toBe(1)
    ask(LRS).ended.catch(() => undefined)
    await expect.poll(() => open).toBe(2)
    expect(await ask(EDS).ended).toBe(status.RESOURCE_EXHAUSTED)
    expect(open).toBe(2)
    first.stream.cancel()
    await expect.poll(() => open).toBe(1)
    ask(LRS).ended.catch(() => undefined)
    await expect.poll(() => open).toBe(2)
  } finally {
    for (const client of clients) client.close()
    await listening.close()
  }
})

test('connections have a limit, and one too many is told so', async () => {
  const onStream = (): void => undefined
  const server = createServer({ loads: onStream })
  const listening = await bind(server, '127.0.0.1', 0, undefined, 'test', 2)
  const open = async () => {
    const socket = connect(listening.address.port, '127.0.0.1')
    socket.on('error', () => undefined)
    const [first] = (await once(socket, 'data')) as [Buffer]
    return { socket, first }
  }
  try {
    const known = [await open(), await open()]
    for (const { first } of known) expect(first.toString('latin1')).not.toContain('more than')
    const refused = await open()
    expect(refused.first.toString('latin1')).toContain('more than 2 connections')
    await once(refused.socket, 'close')
    known[0]!.socket.destroy()
    await expect
      .poll(async () => (await open()).first.toString('latin1'))
      .not.toContain('more than')
  } finally {
    await listening.close()
  }
})
