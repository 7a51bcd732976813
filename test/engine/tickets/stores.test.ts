/** Tickets in the stores that people use: Keyv over a real Redis, and unstorage over files and memory. */
import KeyvRedis from '@keyv/redis'
import {
  findOrphans,
  fromUnstorage,
  reconcile,
  restore,
  resumeRoll,
  startDrain,
  startRoll,
  type Ticket,
  type TicketStore,
} from 'drainable'
import { fakeProvider, type FakeProvider } from 'drainable/testing'
import Keyv from 'keyv'
import { createStorage, type Driver } from 'unstorage'
import fsDriver from 'unstorage/drivers/fs'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { workDir } from '../../support/envoy/proxy.js'
import { StoreServer } from '../../support/store-servers.js'

const web1 = { pool: 'web', member: 'web1' }

/** Its types are not found by every resolver. */
const filesIn = fsDriver as unknown as (options: { readonly base: string }) => Driver

/** A store that several processes open, each by itself. */
interface Stores extends AsyncDisposable {
  readonly open: () => TicketStore
}

async function keyvOnRedis(namespace: string | undefined): Promise<Stores> {
  const [engine] = engines('redis')
  if (engine === undefined) throw new Error('no Redis')
  const server = await StoreServer.redis(engine)
  const all: Keyv[] = []
  return {
    open: () => {
      const redis = new KeyvRedis(`redis://127.0.0.1:${server.port}`)
      const keyv = new Keyv(redis, namespace === undefined ? {} : { namespace })
      keyv.on('error', () => undefined)
      all.push(keyv)
      return keyv
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(all.map((keyv) => keyv.disconnect()))
      await server[Symbol.asyncDispose]()
    },
  }
}

async function keyvInMemory(): Promise<Stores> {
  const map = new Map<string, unknown>()
  return { open: () => new Keyv(map), [Symbol.asyncDispose]: () => Promise.resolve() }
}

async function unstorageOnFiles(): Promise<Stores> {
  const dir = await workDir()
  return {
    open: () => fromUnstorage(createStorage({ driver: filesIn({ base: dir.path }) })),
    [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
  }
}

async function unstorageInMemory(): Promise<Stores> {
  const storage = createStorage()
  return { open: () => fromUnstorage(storage), [Symbol.asyncDispose]: () => storage.dispose() }
}

const KINDS: readonly (readonly [string, () => Promise<Stores>])[] = [
  ...engines('redis').flatMap(() => [
    ['Keyv 5 on Redis', () => keyvOnRedis(undefined)] as const,
    ['Keyv 5 on Redis with a namespace', () => keyvOnRedis('drains')] as const,
  ]),
  ['Keyv 5 in memory', keyvInMemory],
  ['unstorage on files', unstorageOnFiles],
  ['unstorage in memory', unstorageInMemory],
]

function balancer(): FakeProvider {
  return fakeProvider({ pools: { web: ['web1', 'web2', 'web3'] } })
}

describe.each(KINDS)('tickets in %s', (_, start) => {
  it('are found as orphans by another process, and gone once undone', async ({ expect }) => {
    await using stores = await start()
    const lb = balancer()
    const mine = stores.open()
    const run = startDrain(lb, web1, { tickets: mine, id: 'release:42', settle: '0ms' })
    await run.done
    await run.release()
    const ticket = (await mine.get('release:42')) as Ticket
    await mine.set('release:42', { ...ticket, owner: { ...ticket.owner, host: 'elsewhere' } })
    const theirs = stores.open()
    const [orphan, ...more] = await findOrphans(theirs, lb)
    expect(more).toEqual([])
    expect(orphan).toMatchObject({ ticket: { id: 'release:42' }, members: [{ own: 'maint' }] })
    await restore(lb, orphan!.ticket, { tickets: theirs })
    expect(lb.state(web1)).toBe('ready')
    expect(await findOrphans(stores.open(), lb)).toEqual([])
    expect((await mine.get('release:42')) ?? undefined).toBeUndefined()
  })

  it('hold a roll that another process resumes', async ({ expect }) => {
    await using stores = await start()
    const lb = balancer()
    const fail = (): Promise<void> => Promise.reject(new Error('exit 1'))
    const options = { id: 'roll-1', settle: '0ms' } as const
    const first = stores.open()
    await startRoll(lb, { pool: 'web' }, { ...options, act: fail, tickets: first }).done
    const second = stores.open()
    const ticket = (await second.get('roll-1')) as Ticket
    const calls: string[] = []
    const act = async ({ ref, attempt }: { ref: { member: string }; attempt: number }) =>
      void calls.push(`${ref.member} ${attempt}`)
    const report = await resumeRoll(lb, ticket, { act, tickets: second }).done
    expect(report.outcome).toBe('done')
    expect(calls).toEqual(['web1 2', 'web2 1', 'web3 1'])
    expect((await first.get('roll-1')) ?? undefined).toBeUndefined()
  })

  it('remember what a reconciler added', async ({ expect }) => {
    await using stores = await start()
    const lb = balancer()
    const others = ['web1', 'web2', 'web3'].map((member) => ({
      pool: 'web',
      member,
      state: 'serve' as const,
    }))
    const fresh = {
      pool: 'web',
      member: 'n',
      address: '10.0.0.9',
      port: 80,
      state: 'serve',
    } as const
    {
      await using loop = reconcile(lb, { pools: ['web'], tickets: stores.open() })
      loop.set([...others, fresh])
      await loop.settled()
    }
    expect(lb.state({ pool: 'web', member: 'n' })).toBe('ready')
    await using next = reconcile(lb, { pools: ['web'], tickets: stores.open(), settle: '0ms' })
    next.set(others)
    await next.settled()
    expect(lb.state({ pool: 'web', member: 'n' })).toBe('gone')
    expect(lb.state(web1)).toBe('ready')
  })
})
