/**
 * Takes a server out of a HAProxy in the middle of a slow request, in the face of a reload, and puts
 * it back, while clients go on asking.
 *
 * The HAProxy is the stand-in of `drainable/testing/haproxy-runtime`, which forwards to two real HTTP
 * servers started here. Give HAPROXY_SOCKET (and HAPROXY_MASTER, POOL, MEMBER) to drain a real one.
 */
import { createServer, get, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { drain, ready } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake } from 'drainable/testing/haproxy-runtime'

const { HAPROXY_SOCKET, HAPROXY_MASTER, POOL = 'web', MEMBER = 'web1' } = process.env
const member = { pool: POOL, member: MEMBER }

if (HAPROXY_SOCKET === undefined) await onTheStandIn()
else {
  await using lb = haproxyRuntime({ socket: HAPROXY_SOCKET, master: HAPROXY_MASTER })
  await deploy(lb)
}

/** Drains, does the work, puts back. */
async function deploy(lb: ReturnType<typeof haproxyRuntime>): Promise<void> {
  let shown = ''
  await drain(
    lb,
    member,
    {
      timeout: '2m',
      onEvent: (event) => {
        const text = event.type === 'load' ? (event.why[0]?.text ?? '') : event.type
        if (text !== shown) console.log((shown = text))
      },
    },
    (report) => {
      console.log(report.members[0]?.proof?.text ?? 'no proof')
      console.log('... here the new release is installed ...')
      return Promise.resolve()
    },
  )
  await ready(lb, member)
  console.log(`${MEMBER}: in service again`)
}

async function onTheStandIn(): Promise<void> {
  const servers = [await serve('web1'), await serve('web2')]
  const fake = await startFake({
    master: true,
    pools: {
      web: servers.map(({ server, name }) => ({
        name,
        address: '127.0.0.1',
        port: portOf(server),
      })),
    },
    frontends: { in: { pool: 'web', cookie: 'SRV' } },
  })
  try {
    const port = fake.ports['in'] ?? 0
    const slow = ask(port, '/slow', 'web1')
    await until(() => servers[0]?.busy() === 1)
    setTimeout(() => void fake.reload(), 300)
    await using lb = haproxyRuntime({ socket: fake.socket, master: fake.master })
    await deploy(lb)
    console.log(`the slow request: ${await slow}; the next one: ${await ask(port, '/')}`)
  } finally {
    await fake.close()
    for (const { server } of servers) {
      server.close()
      server.closeAllConnections()
    }
  }
}

async function serve(name: string): Promise<{ name: string; server: Server; busy: () => number }> {
  let busy = 0
  const server = createServer((request, response) => {
    busy += 1
    response.on('close', () => (busy -= 1))
    if (request.url === '/slow') setTimeout(() => response.end(`${name}, slowly`), 1_500)
    else response.end(name)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { name, server, busy: () => busy }
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

function ask(port: number, path: string, cookie?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = cookie === undefined ? {} : { cookie: `SRV=${cookie}` }
    get({ host: '127.0.0.1', port, path, headers, agent: false }, (reply) => {
      let body = ''
      reply.on('data', (chunk: Buffer) => (body += chunk.toString()))
      reply.on('end', () => resolve(`${reply.statusCode ?? 0} ${body}`))
    }).on('error', reject)
  })
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}
