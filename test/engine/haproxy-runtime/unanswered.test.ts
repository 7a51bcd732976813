/** Changes that reach nobody: a put-back, and the opening of a server that was added. */
import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { drain, reconcile, roll } from 'drainable'
import { callContext } from 'drainable/provider'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { lab, web1, work, type Lab } from '../../support/haproxy-lab.js'
import { memoryStore } from '../../unit/reconcile/set-up.js'

/** Stands before the stats socket. */
class Between implements AsyncDisposable {
  readonly path: string
  /** Whether changes reach nobody and get no answer. */
  swallows = false
  /** How many were swallowed. */
  swallowed = 0
  readonly #to: string
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer((client) => {
    const behind = createConnection({ path: this.#to })
    for (const socket of [client, behind]) {
      this.#sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        this.#sockets.delete(socket)
        client.destroy()
        behind.destroy()
      })
    }
    client.on('data', (chunk: Buffer) => {
      const isSwallowed = this.swallows && chunk.includes('set server')
      if (isSwallowed) this.swallowed += 1
      else behind.write(chunk)
    })
    behind.pipe(client)
  })

  private constructor(it: Lab) {
    this.path = join(it.haproxy.dir, 'between.sock')
    this.#to = it.haproxy.socket
  }

  static async open(it: Lab): Promise<Between> {
    const between = new Between(it)
    between.#server.listen(between.path)
    await once(between.#server, 'listening')
    return between
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

/** Lets a reload forget the drain, and a request in; resolves with the reason of the signal, in good time. */
async function lostAfterReload(it: Lab, between: Between, signal: AbortSignal): Promise<unknown> {
  between.swallows = true
  await it.haproxy.reload()
  await until(() => between.swallowed > 0, 'the drain is put back')
  const request = await work(it)
  try {
    await until(() => signal.aborted, 'the action is told', 3_000)
  } finally {
    between.swallows = false
    await request.end()
  }
  return signal.reason as unknown
}

describe.each(engines('haproxy'))('an unanswered put-back on HAProxy $version', (engine) => {
  it.concurrent('leaves the action of drain() told of work at once', async ({ expect }) => {
    await using it = await lab({ engine })
    await using between = await Between.open(it)
    await using lb = it.provider({ socket: between.path, replyTimeout: '20s' })
    let reason: unknown
    await drain(lb, web1, { timeout: '20s' }, async (_, { signal }) => {
      reason = await lostAfterReload(it, between, signal)
    })
    expect(reason).toMatchObject({ code: 'IDLE_LOST', ref: web1 })
  })

  it.concurrent('leaves the act of roll() told of work at once', async ({ expect }) => {
    await using it = await lab({ engine })
    await using between = await Between.open(it)
    await using lb = it.provider({ socket: between.path, replyTimeout: '20s' })
    let reason: unknown
    const act = async ({ signal }: { signal: AbortSignal }): Promise<void> => {
      reason = await lostAfterReload(it, between, signal)
    }
    await roll(lb, [web1], { act, timeout: '20s', waitHealthy: false })
    expect(reason).toMatchObject({ code: 'IDLE_LOST', ref: web1 })
  })
})

describe.each(engines('haproxy'))(
  'an addition that ends before its opening on HAProxy $version',
  (engine) => {
    it.concurrent('is opened by the next process', async ({ expect }) => {
      await using it = await lab({ engine })
      await using between = await Between.open(it)
      const tickets = memoryStore()
      const added = { pool: 'web', member: 'late', address: '127.0.0.1', port: 9 } as const
      const options = { pools: ['web'], owns: () => false, tickets }
      const set = [{ ...added, state: 'serve' as const }]
      {
        await using lb = it.provider({ socket: between.path })
        await using loop = reconcile(lb, options)
        between.swallows = true
        loop.set(set)
        await until(() => between.swallowed > 0, 'it is opened')
      }
      between.swallows = false
      await using lb = it.provider({ socket: between.path })
      await using loop = reconcile(lb, options)
      loop.set(set)
      await until(async () => {
        const { readings } = await lb.observe([added], callContext())
        return readings.some((one) => one.present && one.own === 'ready')
      }, 'it serves')
      expect(loop.status().filter(({ ref }) => ref.member === 'late')).toEqual([])
    })
  },
)
