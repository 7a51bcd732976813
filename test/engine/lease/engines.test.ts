/** What a lease promises, on a real Redis and a real NATS, by the clients that people use. */
import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import { natsLease, redisLease, type Lease, type LeaseGrant } from 'drainable'
import { callContext } from 'drainable/provider'
import { createClient } from 'redis'
import { describe, it } from 'vitest'
import { engines, type Engine } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { StoreServer } from '../../support/store-servers.js'

/** Longer than a pause of a busy machine between two calls of a test. */
const LONG = 60_000
const SHORT = 200

/** Connections to one server, each of a contender's own. */
interface Bench extends AsyncDisposable {
  readonly server: StoreServer
  /** A lease of that key over another connection. */
  readonly lease: (key: string) => Promise<Lease>
}

async function redisBench(engine: Engine): Promise<Bench> {
  const server = await StoreServer.redis(engine)
  const open: { destroy: () => void }[] = []
  return {
    server,
    lease: async (key) => {
      const client = createClient({ url: `redis://127.0.0.1:${server.port}` })
      client.on('error', () => undefined) // what a call fails with is what counts
      await client.connect()
      open.push(client)
      return redisLease(client, { key })
    },
    [Symbol.asyncDispose]: async () => {
      for (const client of open) client.destroy()
      await server[Symbol.asyncDispose]()
    },
  }
}

async function natsBench(engine: Engine): Promise<Bench> {
  const server = await StoreServer.nats(engine)
  const open: { close: () => Promise<void> }[] = []
  return {
    server,
    lease: async (key) => {
      const connection = await connect({ servers: `127.0.0.1:${server.port}` })
      open.push(connection)
      const bucket = await new Kvm(connection).open('leases')
      return natsLease(bucket, { key })
    },
    [Symbol.asyncDispose]: async () => {
      for (const connection of open) await connection.close().catch(() => undefined)
      await server[Symbol.asyncDispose]()
    },
  }
}

const benches: readonly (readonly [string, Engine, (engine: Engine) => Promise<Bench>])[] = [
  ...engines('redis').map((engine) => ['Redis', engine, redisBench] as const),
  ...engines('nats').map((engine) => ['NATS', engine, natsBench] as const),
]

async function granted(lease: Lease, holder: string, ttl: number): Promise<LeaseGrant> {
  const answer = await lease.acquire(holder, ttl, callContext())
  if (!answer.granted) throw new Error(`held by ${String(answer.holder)}`)
  return { holder, fence: answer.fence }
}

describe.each(benches)('a lease of %s', (_, engine, open) => {
  it.concurrent('has one holder, whose name the others are told', async ({ expect }) => {
    await using bench = await open(engine)
    const [a, b] = [await bench.lease('edge'), await bench.lease('edge')]
    const first = await granted(a, 'host-a/1', LONG)
    expect(Number.isSafeInteger(first.fence)).toBe(true)
    const other = await b.acquire('host-b/2', LONG, callContext())
    expect(other).toEqual({ granted: false, holder: 'host-a/1' })
    expect(await a.renew(first, LONG, callContext())).toBe(true)
    // Asked again by its holder, as after a lost answer: the same.
    expect(await granted(a, 'host-a/1', LONG)).toEqual(first)
    // Another key of the same server is another lease.
    expect((await granted(await bench.lease('core'), 'host-b/2', LONG)).holder).toBe('host-b/2')
  })

  it.concurrent(
    'can be had again once its holder gave it up, and only then',
    async ({ expect }) => {
      await using bench = await open(engine)
      const [a, b] = [await bench.lease('edge'), await bench.lease('edge')]
      const first = await granted(a, 'a', LONG)
      await b.release({ holder: 'b', fence: first.fence }, callContext())
      expect((await b.acquire('b', LONG, callContext())).granted).toBe(false)
      await a.release(first, callContext())
      const second = await granted(b, 'b', LONG)
      expect(second.fence).toBeGreaterThan(first.fence)
      expect(await a.renew(first, LONG, callContext())).toBe(false)
      await a.release(first, callContext()) // late: it is another client's
      expect(await b.renew(second, LONG, callContext())).toBe(true)
    },
  )

  it.concurrent('goes to another holder when its time is over', async ({ expect }) => {
    await using bench = await open(engine)
    const [a, b] = [await bench.lease('edge'), await bench.lease('edge')]
    const began = performance.now()
    const first = await granted(a, 'a', SHORT)
    const second = await until(async () => {
      const answer = await b.acquire('b', LONG, callContext())
      return answer.granted && { holder: 'b', fence: answer.fence }
    }, 'the lease is free')
    expect(performance.now() - began).toBeGreaterThanOrEqual(SHORT - 1)
    expect(second.fence).toBeGreaterThan(first.fence)
    expect(await a.renew(first, LONG, callContext())).toBe(false)
    await a.release(first, callContext())
    expect(await b.renew(second, LONG, callContext())).toBe(true)
  })

  it.concurrent('is granted to one of twenty that ask at once, each time', async ({ expect }) => {
    await using bench = await open(engine)
    const names = Array.from({ length: 20 }, (_, n) => `host-${n}`)
    const all = await Promise.all(names.map(async () => bench.lease('edge')))
    let last = 0
    for (let round = 0; round < 10; round += 1) {
      const answers = await Promise.all(
        all.map((lease, n) => lease.acquire(names[n] ?? '', LONG, callContext())),
      )
      const winners = answers.flatMap((answer, n) =>
        answer.granted ? [{ n, fence: answer.fence }] : [],
      )
      expect(winners).toHaveLength(1)
      const [{ n, fence } = { n: 0, fence: 0 }] = winners
      expect(fence).toBeGreaterThan(last)
      last = fence
      for (const answer of answers)
        if (!answer.granted) expect([names[n], null]).toContain(answer.holder)
      await all[n]?.release({ holder: names[n] ?? '', fence }, callContext())
    }
  })

  it.concurrent('still answers after a pause of the server', async ({ expect }) => {
    await using bench = await open(engine)
    const a = await bench.lease('edge')
    const first = await granted(a, 'a', LONG)
    bench.server.signal('SIGSTOP')
    const renewal = a.renew(first, LONG, callContext())
    bench.server.signal('SIGCONT')
    expect(await renewal).toBe(true)
  })

  it.concurrent('never gives a lower number after its server was lost', async ({ expect }) => {
    await using bench = await open(engine)
    const first = await granted(await bench.lease('edge'), 'a', SHORT)
    await bench.server.restart()
    const b = await bench.lease('edge')
    const second = await until(async () => {
      const answer = await b.acquire('b', LONG, callContext())
      return answer.granted && answer
    }, 'the lease is free')
    expect(second.fence).toBeGreaterThan(first.fence)
  })
})
