/** A Redis that keeps tickets and stops answering, or is killed, in the middle of a roll or of a drain over two balancers. */
import KeyvRedis from '@keyv/redis'
import {
  combineProviders,
  startDrain,
  startRoll,
  type Drain,
  type Roll,
  type TicketStore,
} from 'drainable'
import { fakeProvider, type FakeProvider } from 'drainable/testing'
import Keyv from 'keyv'
import { createClient } from 'redis'
import { describe, it } from 'vitest'
import { engines, type Engine } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { StoreServer } from '../../support/store-servers.js'

const web1 = { pool: 'web', member: 'web1' }
const quick = { settle: '0ms', timeout: '5m' } as const

interface Opened extends AsyncDisposable {
  readonly server: StoreServer
  readonly tickets: TicketStore
}

async function underKeyv(engine: Engine): Promise<Opened> {
  const server = await StoreServer.redis(engine)
  const keyv = new Keyv(new KeyvRedis(`redis://127.0.0.1:${server.port}`))
  keyv.on('error', () => undefined)
  return {
    server,
    tickets: keyv,
    [Symbol.asyncDispose]: async () => {
      server.signal('SIGCONT')
      await server[Symbol.asyncDispose]()
      void keyv.disconnect().catch(() => undefined)
    },
  }
}

async function underNodeRedis(engine: Engine): Promise<Opened> {
  const server = await StoreServer.redis(engine)
  const client = createClient({ url: `redis://127.0.0.1:${server.port}` })
  client.on('error', () => undefined)
  await client.connect()
  return {
    server,
    tickets: {
      get: async (key) => (await client.get(key)) ?? undefined,
      set: (key, value) => client.set(key, JSON.stringify(value)),
      delete: (key) => client.del(key),
      keys: () => client.keys('*'),
    },
    [Symbol.asyncDispose]: async () => {
      server.signal('SIGCONT')
      client.destroy()
      await server[Symbol.asyncDispose]()
    },
  }
}

const silences: readonly (readonly [string, (server: StoreServer) => Promise<void> | void])[] = [
  ['stops', (server) => server.signal('SIGSTOP')],
  ['is killed', (server) => server.kill()],
]

const cases = engines('redis').flatMap((engine) =>
  (
    [
      ['Keyv', underKeyv],
      ['node-redis', underNodeRedis],
    ] as const
  ).flatMap(([client, open]) =>
    silences.map(([name, silence]) => ({
      title: `${client} on a Redis that ${name}`,
      open: () => open(engine),
      silence,
    })),
  ),
)

/** What was said of the ticket, by events and by `why()`. */
function listen(run: Pick<Drain, 'why'> | Pick<Roll, 'why'>): {
  texts: string[]
  stop: () => void
} {
  const texts: string[] = []
  const timer = setInterval(
    () => texts.push(...run.why().map((why) => `${why.code}: ${why.text}`)),
    200,
  )
  return { texts, stop: () => clearInterval(timer) }
}

function balancer(): FakeProvider {
  return fakeProvider({ pools: { web: ['web1', 'web2', 'web3'] } })
}

const LIMIT = 20_000

/** Rejects where something has not ended in time. */
async function soon<T>(what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} has not ended`)), LIMIT)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

describe.each(cases)('$title', ({ open, silence }) => {
  it.concurrent('does not keep a roll from bringing back what it acted on', async ({ expect }) => {
    await using redis = await open()
    const lb = balancer()
    const faults: string[] = []
    const run = startRoll(lb, web1, {
      ...quick,
      act: async () => silence(redis.server),
      tickets: redis.tickets,
      id: 'job',
      onEvent: (event) => {
        if (event.type === 'fault') faults.push(event.error.message)
      },
    })
    const said = listen(run)
    const report = await soon('done', run.done)
    said.stop()
    expect([report.outcome, lb.state(web1)]).toEqual(['done', 'ready'])
    expect(faults.join('\n')).toMatch(/could not be saved: .*ticket store|ECONN|closed/i)
    expect(said.texts.join('\n')).toMatch(/ticket: .*ticket/)
    await soon('close()', run.close())
  })

  it.concurrent(
    'does not keep a roll from its end when it is closed in act',
    async ({ expect }) => {
      await using redis = await open()
      const lb = balancer()
      const acting = Promise.withResolvers<undefined>()
      const run = startRoll(
        lb,
        { pool: 'web' },
        {
          ...quick,
          act: async ({ signal }) => {
            await silence(redis.server)
            acting.resolve(undefined)
            await new Promise((resolve) =>
              signal.addEventListener('abort', resolve, { once: true }),
            )
          },
          tickets: redis.tickets,
          id: 'job',
        },
      )
      await acting.promise
      await soon('close()', run.close())
      const { outcome, leftDrained } = await soon('done', run.done)
      expect([outcome, leftDrained]).toEqual(['aborted', [web1]])
      lb.setBehind(web1, 'ready')
    },
  )

  it.concurrent(
    'does not keep a drain over two balancers from idle, nor from its undo',
    async ({ expect }) => {
      await using redis = await open()
      const [a, b] = [balancer(), fakeProvider({ pools: { web: ['web1', 'web2'] }, instance: 'b' })]
      const end = b.occupy(web1)
      const both = [
        { ...web1, balancer: 'a' },
        { ...web1, balancer: 'b' },
      ]
      const options = { ...quick, tickets: redis.tickets, id: 'job' }
      const run = startDrain(combineProviders({ a, b }), both, options)
      const said = listen(run)
      await until(() => b.state(web1) !== 'ready' && a.state(web1) !== 'ready', 'both are drained')
      await silence(redis.server)
      end()
      const report = await soon('done', run.done)
      expect(report.outcome).toBe('idle')
      const undone = await soon('restore()', run.restore())
      said.stop()
      expect([undone.outcome, a.state(web1), b.state(web1)]).toEqual(['restored', 'ready', 'ready'])
      expect(said.texts.join('\n')).toMatch(/ticket: .*ticket/)
      await soon('close()', run.close())
    },
  )

  it.concurrent('refuses a drain over two balancers, which closes at once', async ({ expect }) => {
    await using redis = await open()
    const [a, b] = [balancer(), fakeProvider({ pools: { web: ['web1', 'web2'] }, instance: 'b' })]
    await silence(redis.server)
    const target = [
      { ...web1, balancer: 'a' },
      { ...web1, balancer: 'b' },
    ]
    const options = { ...quick, tickets: redis.tickets, id: 'job' }
    const run = startDrain(combineProviders({ a, b }), target, options)
    await soon('close()', run.close())
    const { outcome } = await soon('done', run.done)
    expect([outcome === 'idle', a.state(web1), b.state(web1)]).toEqual([false, 'ready', 'ready'])
  })
})
