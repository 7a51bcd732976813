/** The leader is stopped in its tracks for longer than its lease, and woken while another one leads. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { reconcile, redisLease, type DesiredMember } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake, type HaproxyFake } from 'drainable/testing/haproxy-runtime'
import { createClient } from 'redis'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { StoreServer } from '../../support/store-servers.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))

function wish(web1: DesiredMember['state'], web2: DesiredMember['state']): DesiredMember[] {
  return [
    { pool: 'web', member: 'web1', state: web1 },
    { pool: 'web', member: 'web2', state: web2 },
    { pool: 'web', member: 'web3', state: 'serve' },
  ]
}

/** The states that were set so far, in order. */
function changes({ requests }: HaproxyFake): readonly string[] {
  return requests.flatMap(({ line }) => line.match(/set server \S+ state \w+/g) ?? [])
}

/** Its socket as one text. */
function addressOf({ socket }: HaproxyFake): string {
  return typeof socket === 'string' ? socket : `${socket.host}:${socket.port}`
}

/** The other controller, and what it said so far. */
function startChild(socket: string, port: number) {
  const script = join(root, 'test/support/lease-child.ts')
  const source = join(root, 'scripts/source.mjs')
  const child = spawn(process.execPath, ['--import', source, script, socket, String(port)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const said: { leading?: boolean; set?: true }[] = []
  createInterface({ input: child.stdout }).on('line', (line) => {
    said.push(JSON.parse(line) as (typeof said)[number])
  })
  return {
    said,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    set: (members: readonly DesiredMember[]) => child.stdin.write(`${JSON.stringify(members)}\n`),
    [Symbol.asyncDispose]: async () => {
      const closed = once(child, 'close')
      child.kill('SIGKILL')
      await closed
    },
  }
}

describe.each(engines('redis'))('Redis $version', (engine) => {
  it('a leader stopped beyond its lease changes nothing when it wakes', async ({ expect }) => {
    await using redis = await StoreServer.redis(engine)
    await using fake = await startFake({ pools: { web: ['web1', 'web2', 'web3'] } })
    await using child = startChild(addressOf(fake), redis.port)
    child.set(wish('drain', 'serve'))
    const last = (): boolean | undefined =>
      child.said.findLast(({ leading }) => leading !== undefined)?.leading
    await until(() => last() === true, 'the child leads', 30_000)
    await until(() => changes(fake).length > 0, 'it drains web1', 30_000)

    const client = createClient({ url: `redis://127.0.0.1:${redis.port}` })
    client.on('error', () => undefined)
    await client.connect()
    try {
      const lease = redisLease(client, { key: 'edge' })
      await using lb = haproxyRuntime({ socket: fake.socket })
      await using loop = reconcile(lb, { pools: ['web'], owns: () => true, lease, leaseTtl: '1s' })
      loop.set(wish('drain', 'serve'))
      child.kill('SIGSTOP')
      await until(() => loop.leading, 'the other one leads', 30_000)
      await loop.settled()
      const before = changes(fake)
      const sets = child.said.filter(({ set }) => set).length
      // The child is not told that its time is over: it has to know by its own clock.
      redis.signal('SIGSTOP')
      child.set(wish('serve', 'drain'))
      child.kill('SIGCONT')
      await until(
        () => child.said.filter(({ set }) => set).length > sets,
        'it has a new wish',
        30_000,
      )
      await until(() => last() === false, 'it knows that it leads no more', 30_000)
      expect(changes(fake)).toEqual(before)
      redis.signal('SIGCONT')

      // The one that leads is gone: the other one has its wish.
      await loop.close()
      await until(() => last() === true, 'the child leads again', 30_000)
      await until(
        () =>
          changes(fake)
            .slice(before.length)
            .some((line) => /web2 state (drain|maint)/.test(line)),
        'it drains web2',
        30_000,
      )
    } finally {
      client.destroy()
    }
  })
})
