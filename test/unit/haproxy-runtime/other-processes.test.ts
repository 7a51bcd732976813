import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { type HaproxyFake, startFake } from 'drainable/testing/haproxy-runtime'
import { expect, test } from 'vitest'
import { context, WEB1 } from './rig.js'

/** A proxy in front of a socket of the fake. */
interface Front extends AsyncDisposable {
  readonly address: { readonly host: string; readonly port: number }
  /** Ends every connection in good order, as a tunnel does that is restarted. */
  restart(): Promise<void>
  /** Listens again, after its end. */
  open(): Promise<void>
}

/** @param answer - what it says itself to a line; nothing: the line goes on */
async function before(to: unknown, answer: (line: string) => string | undefined): Promise<Front> {
  const open = new Set<Socket>()
  const server = createServer((client) => {
    open.add(client)
    client.on('close', () => open.delete(client))
    client.on('error', () => undefined)
    const behind = createConnection(typeof to === 'string' ? { path: to } : (to as never))
    behind.on('error', () => undefined)
    behind.pipe(client)
    client.on('data', (chunk: Buffer) => {
      const own = answer(chunk.toString().trim())
      if (own === undefined) behind.write(chunk)
      else client.end(own)
    })
    client.on('close', () => behind.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return {
    address: { host: '127.0.0.1', port },
    async restart() {
      const ends = [...open].map((socket) => once(socket, 'close'))
      for (const socket of open) socket.end()
      await Promise.all(ends)
    },
    async open() {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy()
      if (!server.listening) return
      server.close()
      await once(server, 'close')
    },
  }
}

async function withMaster(): Promise<HaproxyFake> {
  return startFake({ pools: { web: ['web1', 'web2'] }, master: true })
}

// It serves a moment later, and knows of no drain.
test('a worker that does not serve yet is unread, without an incarnation', async () => {
  await using fake = await withMaster()
  const coming = fake.pid + 1
  let asked = 0
  await using master = await before(fake.master, (line) => {
    if (line === 'show proc;quit')
      return `#<PID> <type> <reloads> <uptime> <version>\n1 master 0 0d00h00m00s 3.2\n# workers\n${fake.pid} worker 0 0d00h00m00s 3.2\n${coming} worker 0 0d00h00m00s 3.2\n\n`
    if (!line.startsWith(`@!${coming};`)) return undefined
    asked += 1
    return 'cut off'
  })
  await using lb = haproxyRuntime({ socket: fake.socket, master: master.address })
  const { readings } = await lb.observe([WEB1], context())
  expect(asked).toBe(0)
  expect(readings[0]!.scopes[1]).toMatchObject({ state: 'unread', incarnation: '', old: false })
})

// What stands before a socket (TLS, a tunnel) may end a silent connection, which says nothing of the process.
test('a restarted tunnel before the stats socket does not end an old worker', async () => {
  await using fake = await withMaster()
  await using socket = await before(fake.socket, () => undefined)
  await using lb = haproxyRuntime({ socket: socket.address, master: fake.master })
  const end = await fake.occupy(WEB1)
  await lb.observe([WEB1], context())
  await lb.apply([{ kind: 'hold', to: 'drain', ref: WEB1 }], context())
  await fake.reload()
  await lb.observe([WEB1], context()) // only says what a reload forgot
  const busy = expect.objectContaining({ state: 'read', old: true, active: 1 }) as unknown
  expect((await lb.observe([WEB1], context())).readings[0]!.scopes).toContainEqual(busy)
  await socket.restart()
  expect((await lb.observe([WEB1], context())).readings[0]!.scopes).toContainEqual(busy)
  await end()
})

test('without a master, a replaced process is unread until within is over', async () => {
  await using fake = await startFake({ pools: { web: ['web1', 'web2'] } })
  await using lb = haproxyRuntime({ socket: fake.socket, oldWorkers: { within: '10ms' } })
  const ctx = context()
  await lb.observe([WEB1], ctx)
  await fake.reload()
  await lb.observe([WEB1], ctx) // only says what a reload forgot
  const [reading] = (await lb.observe([WEB1], ctx)).readings
  expect(reading!.scopes.map(({ state }) => state)).toEqual(['read', 'unread', 'unread'])
  // HAProxy tells the old process to stop once the new one runs: a margin of 2 s.
  const ended = async (): Promise<unknown> => (await lb.observe([WEB1], ctx)).ended
  await expect.poll(ended, { timeout: 10_000 }).toBe('unlisted')
  expect((await lb.observe([WEB1], ctx)).readings[0]!.scopes).toHaveLength(1)
})

// A loaded machine: the worker that was asked ends in a reload before the master can pass a question on.
test('a reload during the first look does not mean a wrong master', async () => {
  await using fake = await withMaster()
  let reloads = true
  await using master = await before(fake.master, (line) =>
    reloads && line.startsWith('@!')
      ? `Can't find the target PID matching the prefix '${line.split(';')[0]}'\n`
      : undefined,
  )
  await using lb = haproxyRuntime({ socket: fake.socket, master: master.address })
  let now = 0
  const clock = { ...context().clock, now: () => (now += 400) } // each question takes long
  const error: unknown = await lb
    .observe([WEB1], { ...context(), clock })
    .catch((cause: unknown) => cause)
  expect(error).toMatchObject({ code: 'CONFLICT', retryable: true })
  reloads = false
  expect((await lb.observe([WEB1], context())).readings[0]).toMatchObject({ present: true })
})

// A loaded machine: the new worker serves its socket, and the master is slow to enter it in its list.
test('a worker not listed by its master yet does not mean a wrong master', async () => {
  await using fake = await withMaster()
  const from = performance.now()
  await using master = await before(fake.master, (line) =>
    line === 'show proc;quit' && performance.now() - from < 1_500
      ? '#<PID> <type> <reloads> <uptime> <version>\n1 master 0 0d00h00m00s 3.2\n# workers\n2 worker 0 0d00h00m00s 3.2\n\n'
      : undefined,
  )
  await using lb = haproxyRuntime({ socket: fake.socket, master: master.address })
  expect((await lb.observe([WEB1], context())).readings[0]).toMatchObject({ present: true })
})

// Seen on a loaded machine: more than a second.
test('a master that re-executes itself for 4 s is waited for', async () => {
  await using fake = await withMaster()
  await using master = await before(fake.master, () => undefined)
  await master[Symbol.asyncDispose]() // nothing listens
  let now = 0
  const clock = {
    ...context().clock,
    now: () => {
      if ((now += 100) === 4_000) void master.open()
      return now
    },
  }
  await using lb = haproxyRuntime({ socket: fake.socket, master: master.address })
  const { readings } = await lb.observe([WEB1], { ...context(), clock })
  expect(readings[0]).toMatchObject({ present: true })
})

// A master executes itself again at a reload, which takes half a second: the worker's socket answers first.
test('a reload is reported before a silent master answers', async () => {
  await using fake = await withMaster()
  await using lb = haproxyRuntime({
    socket: fake.socket,
    master: fake.master,
    replyTimeout: '5m',
  })
  await lb.observe([WEB1], context())
  await lb.apply([{ kind: 'hold', to: 'drain', ref: WEB1 }], context())
  const asked = (): number => fake.requests.filter(({ line }) => /^show proc/.test(line)).length
  const before = asked()
  fake.fail({ match: /^show proc/, how: 'silent', times: 1 })
  const seen = lb.observe([WEB1], context())
  await expect.poll(asked).toBe(before + 1)
  await fake.reload()
  expect((await seen).readings[0]).toMatchObject({ own: 'ready' })
  expect((await lb.observe([WEB1], context())).readings[0]).toMatchObject({ own: 'ready' })
})

test('a reload found by a look is reported without asking the master', async () => {
  await using fake = await withMaster()
  await using lb = haproxyRuntime({
    socket: fake.socket,
    master: fake.master,
    replyTimeout: '5m',
  })
  await lb.observe([WEB1], context())
  await lb.apply([{ kind: 'hold', to: 'drain', ref: WEB1 }], context())
  await lb.observe([WEB1], context())
  const asked = (): number => fake.requests.filter(({ line }) => /^show proc/.test(line)).length
  const before = asked()
  await fake.reload()
  fake.fail({ match: /^show proc/, how: 'silent', times: 1 })
  const { readings } = await lb.observe([WEB1], context())
  expect(readings[0]).toMatchObject({ own: 'ready' })
  expect(asked()).toBe(before)
})

/** What a master says that was started anew and knows its own worker alone. */
function ofAnotherMaster(fake: HaproxyFake): string {
  return `#<PID> <type> <reloads> <uptime> <version>\n9 master 0 0d00h00m00s 3.2\n# workers\n${fake.pid} worker 0 0d00h00m00s 3.2\n\n`
}

// The connection that was kept to it ends with it, over a unix socket.
test('a worker of an earlier master has ended with its connection', async () => {
  await using fake = await withMaster()
  let another = false
  await using master = await before(fake.master, (line) =>
    another && line === 'show proc;quit' ? ofAnotherMaster(fake) : undefined,
  )
  await using lb = haproxyRuntime({ socket: fake.socket, master: master.address })
  await lb.apply([{ kind: 'hold', to: 'drain', ref: WEB1 }], context())
  await fake.occupy(WEB1)
  await lb.observe([WEB1], context())
  await fake.restart()
  another = true
  await lb.observe([WEB1], context()) // only says what a restart forgot
  const { readings, ended } = await lb.observe([WEB1], context())
  expect(readings[0]!.scopes.map(({ state }) => state)).toEqual(['read'])
  expect(ended).toBe('unlisted')
})

test('a worker of an earlier master that can not be reached is unread', async () => {
  await using fake = await withMaster()
  let another = false
  await using master = await before(fake.master, (line) =>
    another && line === 'show proc;quit' ? ofAnotherMaster(fake) : undefined,
  )
  await using lb = haproxyRuntime({ socket: fake.socket, master: master.address })
  await lb.observe([WEB1], context()) // nothing is held: no connection is kept
  const end = await fake.occupy(WEB1)
  await fake.reload()
  another = true
  await lb.observe([WEB1], context())
  const { readings, ended } = await lb.observe([WEB1], context())
  expect(readings[0]!.scopes[1]).toMatchObject({
    state: 'unread',
    note: expect.stringContaining('another master') as unknown,
  })
  expect(ended).not.toBe('unlisted')
  await end()
})

test.each([
  ['accept', 'given up by the option oldWorkers', ['read', 'ended']],
  [{ within: '1h' }, undefined, ['read', 'unread']],
] as const)(
  'a worker of an earlier master under oldWorkers %j',
  async (oldWorkers, words, states) => {
    await using fake = await withMaster()
    let another = false
    await using master = await before(fake.master, (line) =>
      another && line === 'show proc;quit' ? ofAnotherMaster(fake) : undefined,
    )
    await using lb = haproxyRuntime({ socket: fake.socket, master: master.address, oldWorkers })
    await lb.observe([WEB1], context())
    await fake.reload()
    another = true
    await lb.observe([WEB1], context())
    const [reading] = (await lb.observe([WEB1], context())).readings
    expect(reading!.scopes.map(({ state }) => state)).toEqual(states)
    const said = reading?.present === true ? reading.unverified : 'absent'
    expect(said?.slice(-(words?.length ?? 0))).toBe(words)
  },
)
