import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Scheduler } from 'fast-check'
import type { Ticket, TicketStore, UnstorageLike } from 'drainable'
import { parsePolicy } from '../../../src/core/calls/policy.js'

/** A ticket of a drain that has changed nothing yet. */
export function ticketOf(id: string): Ticket {
  return {
    v: 1,
    id,
    instance: 'fake',
    startedAt: '2026-11-22T10:00:00.000Z',
    deadline: null,
    policy: parsePolicy({}, 'ticketOf()').data,
    members: [],
    parts: [{ balancer: null, name: 'fake', instance: 'fake' }],
    owner: { name: null, host: 'host', pid: 1, boot: 'boot', started: null, space: null },
  }
}

/** What another process would read: JSON, nothing else. */
export function json(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value))
}

/** A store of three verbs, which lists nothing. Each is as good as another process on the same map. */
export function unlistedStore(map: Map<string, unknown>): TicketStore {
  return {
    get: async (key) => json(map.get(key)),
    set: async (key, value) => map.set(key, json(value)),
    delete: async (key) => map.delete(key),
  }
}

/** The same, which lists its keys. */
export function plainStore(map: Map<string, unknown>): TicketStore {
  return { ...unlistedStore(map), keys: () => map.keys() }
}

/** The same, whose requests arrive and are answered in the order that a scheduler draws. */
export function slowStore(scheduler: Scheduler, map: Map<string, unknown>): TicketStore {
  const plain = plainStore(map)
  const pass = async <T>(work: () => Promise<T>): Promise<T> => {
    await scheduler.schedule(Promise.resolve())
    const result = await work()
    await scheduler.schedule(Promise.resolve())
    return result
  }
  return {
    get: (key) => pass(() => plain.get(key)),
    set: (key, value) => pass(() => plain.set(key, value)),
    delete: (key) => pass(() => plain.delete(key)),
    keys: () => map.keys(),
  }
}

/**
 * Keyv 5.6 on a map, as far as tickets need it: one prefix and `:`, which a key that has it already
 * does not get again; every key of the iterator cut at its first `:`.
 *
 * @param iterates - whether its adapter has an iterator
 */
export function keyv5(
  map: Map<string, string>,
  namespace: string | undefined,
  iterates: 'yes' | 'no' = 'yes',
): TicketStore {
  const prefixed = (key: string): string =>
    namespace === undefined || key.startsWith(`${namespace}:`) ? key : `${namespace}:${key}`
  async function* iterator(): AsyncGenerator<[string, unknown]> {
    for (const [key, text] of map) {
      if (namespace !== undefined && !key.includes(namespace)) continue
      yield [key.split(':').slice(1).join(':'), (JSON.parse(text) as { value: unknown }).value]
    }
  }
  return {
    async get(key) {
      const text = map.get(prefixed(key))
      return text === undefined ? undefined : (JSON.parse(text) as { value: unknown }).value
    },
    async set(key, value) {
      map.set(prefixed(key), JSON.stringify({ value }))
      return true
    },
    delete: async (key) => map.delete(prefixed(key)),
    ...(iterates === 'no' ? {} : { iterator, namespace }),
  }
}

/** Keyv 6.1 on a map: `::` behind the namespace. */
export function keyv6(map: Map<string, string>, namespace: string | undefined): TicketStore {
  const front = namespace === undefined ? '' : `${namespace}::`
  async function* iterator(): AsyncGenerator<[string, unknown]> {
    for (const [key, text] of map) {
      if (!key.startsWith(front)) continue
      yield [key.slice(front.length), (JSON.parse(text) as { value: unknown }).value]
    }
  }
  return {
    async get(key) {
      const text = map.get(front + key)
      return text === undefined ? undefined : (JSON.parse(text) as { value: unknown }).value
    },
    async set(key, value) {
      map.set(front + key, JSON.stringify({ value }))
      return true
    },
    delete: async (key) => map.delete(front + key),
    ...{ iterator, namespace },
  }
}

/** unstorage 1.17 on a map: its normal form of a key, keys it refuses, JSON text inside, values parsed. */
export function unstorage(map: Map<string, string>): Required<UnstorageLike> {
  const normal = (key: string): string => {
    const [head = ''] = key.split('?')
    const plain = head.replace(/[/\\]/g, ':').replace(/:+/g, ':').replace(/^:|:$/g, '')
    if (plain === '' || plain.split(':').some((part) => part === '.' || part === '..')) {
      throw new Error(`[unstorage] Invalid key: ${JSON.stringify(key)}`)
    }
    return plain
  }
  return {
    async getItem(key) {
      const text = map.get(normal(key))
      return text === undefined ? null : (JSON.parse(text) as unknown)
    },
    setItem: async (key, value) => void map.set(normal(key), JSON.stringify(value)),
    removeItem: async (key) => void map.delete(normal(key)),
    getKeys: async () => [...map.keys()].filter((key) => !key.endsWith('$')),
  }
}

/** A folder of its own for one test. */
export async function temporaryFolder(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'drainable-tickets-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}
