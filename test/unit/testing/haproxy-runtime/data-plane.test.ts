import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { connect, createServer as createTcpServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { startFake } from 'drainable/testing/haproxy-runtime'
import type { HaproxyFake, FakeOptions } from 'drainable/testing/haproxy-runtime'
import { freePort } from '../../../../scripts/ports.ts'
import { ask } from './ask.js'

interface Backend extends AsyncDisposable {
  readonly port: number
  readonly served: () => number
  /** Lets every answer that `/slow` waits for go. */
  readonly release: () => void
}

/** A real HTTP server: `/` at once, `/slow` when released, `/stream` half at once, and upgrades that echo. */
async function startBackend(name: string): Promise<Backend> {
  let served = 0
  const held: (() => void)[] = []
  const server = createServer((req, res) => {
    served++
    if (req.url === '/slow') held.push(() => res.end(name))
    else if (req.url === '/stream') {
      res.write('first,')
      held.push(() => res.end(name))
    } else if (req.method === 'POST') req.pipe(res)
    else res.end(name)
  })
  server.on('upgrade', (_req, socket: Socket) => {
    served++
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n')
    socket.pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    served: () => served,
    release: () => held.splice(0).forEach((end) => end()),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function setup(options: Partial<FakeOptions> = {}) {
  const stack = new AsyncDisposableStack()
  const one = stack.use(await startBackend('web1'))
  const two = stack.use(await startBackend('web2'))
  const fake = stack.use(
    await startFake({
      pools: {
        web: [
          { name: 'web1', to: one.port },
          { name: 'web2', to: two.port },
        ],
      },
      frontends: { web: {} },
      master: true,
      ...options,
    }),
  )
  return {
    one,
    two,
    fake,
    port: fake.ports['web']!,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

interface Reply {
  readonly status: number
  readonly text: string
  readonly headers: IncomingMessage['headers']
}

function get(port: number, path = '/', options: object = {}, body?: string): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST'
    const req = request({ host: '127.0.0.1', port, path, method, ...options }, (res) => {
      let text = ''
      res.setEncoding('utf8')
      res.on('data', (chunk: string) => (text += chunk))
      res.on('end', () => resolve({ status: res.statusCode!, text, headers: res.headers }))
      res.on('error', reject)
    })
    req.on('error', reject)
    req.end(body)
  })
}

async function stat(fake: HaproxyFake, server: string): Promise<Record<string, string>> {
  const text = await ask(fake.socket, 'show stat -1 4 -1\n')
  const [header = '', ...rows] = text.split('\n')
  const names = header.slice(2).split(',')
  const row = rows.map((line) => line.split(',')).find((values) => values[1] === server)!
  return Object.fromEntries(names.map((name, i) => [name, row[i]!]))
}

/** Until the row looks like this; no fixed wait. */
async function until(
  fake: HaproxyFake,
  server: string,
  wanted: Record<string, string>,
): Promise<void> {
  await expect.poll(() => stat(fake, server), { interval: 5 }).toMatchObject(wanted)
}

function say(fake: HaproxyFake, line: string): Promise<string> {
  return ask(fake.socket, `${line}\n`)
}

describe('HTTP through the fake', () => {
  test('goes round the servers, with bodies both ways, counted', async () => {
    await using at = await setup()
    const texts = new Set<string>()
    for (let i = 0; i < 4; i++) texts.add((await get(at.port)).text)
    expect([...texts].sort()).toEqual(['web1', 'web2'])
    expect((await get(at.port, '/', {}, 'x'.repeat(200_000))).text).toHaveLength(200_000)
    const total =
      Number((await stat(at.fake, 'web1'))['stot']) + Number((await stat(at.fake, 'web2'))['stot'])
    expect(total).toBe(5)
    expect(at.one.served() + at.two.served()).toBe(5)
  })

  test('holds what is in flight through drain and maint, and lets it end', async () => {
    await using at = await setup()
    await say(at.fake, 'set server web/web2 state maint')
    const slow = get(at.port, '/slow')
    const stream = get(at.port, '/stream')
    await until(at.fake, 'web1', { scur: '2', status: 'no check' })
    await say(at.fake, 'set server web/web2 state ready')
    await say(at.fake, 'set server web/web1 state drain')
    for (let i = 0; i < 4; i++) expect((await get(at.port)).text).toBe('web2')
    await say(at.fake, 'set server web/web1 state maint')
    await until(at.fake, 'web1', { scur: '2', status: 'MAINT', stot: '2' })
    at.one.release()
    expect((await slow).text).toBe('web1')
    expect((await stream).text).toBe('first,web1')
    await until(at.fake, 'web1', { scur: '0', stot: '2' })
  })

  test('passes an upgrade through and counts it until both ends are closed', async () => {
    await using at = await setup()
    await say(at.fake, 'set server web/web2 state maint')
    const client = connect(at.port, '127.0.0.1')
    client.setEncoding('utf8')
    client.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n')
    const [head] = (await once(client, 'data')) as [string]
    expect(head).toContain('101 Switching Protocols')
    client.write('ping')
    expect((await once(client, 'data'))[0]).toBe('ping')
    await say(at.fake, 'set server web/web1 state drain')
    expect((await stat(at.fake, 'web1'))['scur']).toBe('1')
    expect(await say(at.fake, 'show sess all')).toContain('req.st=MSG_TUNNEL rsp.st=MSG_TUNNEL')
    client.destroy()
    await until(at.fake, 'web1', { scur: '0' })
  })

  test('keeps a client on its server by cookie, under drain, not maint', async () => {
    await using at = await setup({ frontends: { web: { cookie: 'SRV' } } })
    const first = await get(at.port)
    const name = first.text
    const other = name === 'web1' ? 'web2' : 'web1'
    const headers = { cookie: first.headers['set-cookie']![0]!.split(';')[0]! }
    expect((await get(at.port, '/', { headers })).text).toBe(name)
    await say(at.fake, `set server web/${name} state drain`)
    expect((await get(at.port, '/', { headers })).text).toBe(name)
    expect((await get(at.port)).text).toBe(other)
    await say(at.fake, `set server web/${name} state maint`)
    expect((await get(at.port, '/', { headers })).text).toBe(other)
  })

  test('cuts what shutdown sessions names, and nothing else', async () => {
    await using at = await setup()
    await say(at.fake, 'set server web/web2 state drain')
    const cut = get(at.port, '/slow').catch((error: unknown) => error)
    await until(at.fake, 'web1', { scur: '1' })
    await say(at.fake, 'shutdown sessions server web/web1')
    expect(await cut).toBeInstanceOf(Error)
    await until(at.fake, 'web1', { scur: '0' })
    expect((await get(at.port)).text).toBe('web1')
  })

  test('answers 503 at once when no server serves', async () => {
    await using at = await setup()
    for (const name of ['web1', 'web2']) await say(at.fake, `set server web/${name} state drain`)
    expect(await get(at.port)).toMatchObject({ status: 503 })
  })

  test('queues beyond maxconn, and serves the queue in turn', async () => {
    await using one = await startBackend('web1')
    await using fake = await startFake({
      pools: { web: [{ name: 'web1', to: one.port, maxconn: 1 }] },
      frontends: { web: { cookie: 'SRV' } },
    })
    const port = fake.ports['web']!
    const headers = { cookie: 'SRV=web1' }
    const all = [1, 2, 3].map(() => get(port, '/slow', { headers }))
    await until(fake, 'web1', { scur: '1', qcur: '2' })
    await say(fake, 'set server web/web1 state drain')
    for (let left = 2; left >= 0; left--) {
      one.release()
      await until(fake, 'web1', { qcur: String(Math.max(0, left - 1)) })
      await expect.poll(() => one.served(), { interval: 5 }).toBe(Math.min(3, 4 - left))
    }
    one.release()
    expect((await Promise.all(all)).map((r) => r.status)).toEqual([200, 200, 200])
  })

  test('hides a request in retry turn-around, which is served in the end', async () => {
    const free = await freePort()
    await using fake = await startFake({
      pools: { web: [{ name: 'web1', to: free }] },
      frontends: { web: {} },
    })
    // The next try is made when the test says so.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const reply = get(fake.ports['web']!)
    await until(fake, 'web1', { scur: '0', qcur: '0', wretr: '1' })
    await say(fake, 'set server web/web1 state drain')
    const late = createServer((_req, res) => res.end('late')).listen(free, '127.0.0.1')
    await once(late, 'listening')
    vi.advanceTimersByTime(1_000)
    expect((await reply).text).toBe('late')
    late.closeAllConnections()
    late.close()
  })

  test('keeps old connections and states on the old worker after a reload', async () => {
    await using at = await setup()
    await say(at.fake, 'set server web/web2 state maint')
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    await get(at.port, '/', { agent })
    const before = at.fake.pid
    await at.fake.reload()
    expect(at.fake.pid).not.toBe(before)
    expect(await say(at.fake, 'set server web/web1 state drain')).toBe('\n')
    // The old worker never got that drain, and its keep-alive client comes again: once.
    const again = await get(at.port, '/', { agent })
    expect(again).toMatchObject({ text: 'web1', headers: { connection: 'close' } })
    expect(await get(at.port)).toMatchObject({ text: 'web2' })
    agent.destroy()
  })

  test('ends an old worker when the last of its work has ended', async () => {
    await using at = await setup()
    await say(at.fake, 'set server web/web2 state maint')
    const slow = get(at.port, '/slow', { agent: false })
    await until(at.fake, 'web1', { scur: '1' })
    const old = at.fake.pid
    await at.fake.reload()
    await until(at.fake, 'web1', { scur: '0', stot: '0' })
    expect(at.fake.load({ pool: 'web', member: 'web1' })).toBe(1)
    const ofOld = (line: string): Promise<string> =>
      ask(at.fake.master!, `@!${old} ${line};quit\n`, { for: 5_000, enough: /target PID/ })
    expect(await ofOld('set server web/web1 state drain')).toBe('Proxy is disabled.\n\n')
    expect(await ofOld('show stat -1 4 1')).toContain('web,web1,0,0,1,')
    at.one.release()
    expect((await slow).text).toBe('web1')
    await expect
      .poll(() => ofOld('show info'), { interval: 10 })
      .toContain("Can't find the target PID")
  })

  test('really checks health, and sends nothing to a server that is down', async () => {
    const two = await startBackend('web2')
    await using one = await startBackend('web1')
    const check = { inter: 300, rise: 1, fall: 1 }
    await using fake = await startFake({
      pools: {
        web: [
          // A late answer to one check takes no server down that is to stay.
          { name: 'web1', to: one.port, check: { ...check, fall: 5 } },
          { name: 'web2', to: two.port, check },
        ],
      },
      frontends: { web: {} },
    })
    await until(fake, 'web2', { status: 'UP', check_status: 'L4OK' })
    await two[Symbol.asyncDispose]()
    await until(fake, 'web2', { status: 'DOWN', check_status: 'L4CON' })
    for (let i = 0; i < 3; i++) expect((await get(fake.ports['web']!)).text).toBe('web1')
  })
})

describe('TCP through the fake', () => {
  test('holds a connection through drain, passes half-closes, and ends with it', async () => {
    const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
      socket.on('data', (chunk) => socket.write(chunk))
      socket.on('end', () => socket.end('bye'))
      socket.on('error', () => undefined)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    await using fake = await startFake({
      pools: { tcp: [{ name: 't1', to: (server.address() as AddressInfo).port }] },
      frontends: { tcp: { mode: 'tcp' } },
    })
    const client = connect({ port: fake.ports['tcp']!, host: '127.0.0.1', allowHalfOpen: true })
    client.setEncoding('utf8')
    client.write('ping')
    expect((await once(client, 'data'))[0]).toBe('ping')
    await say(fake, 'set server tcp/t1 state drain')
    await until(fake, 't1', { scur: '1', used_conn_cur: '0', status: 'DRAIN' })
    client.end()
    expect((await once(client, 'data'))[0]).toBe('bye')
    await until(fake, 't1', { scur: '0', stot: '1' })
    const refused = connect(fake.ports['tcp']!, '127.0.0.1')
    await once(refused, 'close')
    server.close()
  })
})
