import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { TicketStore } from 'drainable'
import { TicketIndex } from '../../../src/core/tickets/ticket-index.js'
import { plainStore, slowStore, ticketOf } from './set-up.js'

type Step = 'save' | 'again' | 'drop' | 'list'

interface Process {
  readonly steps: readonly Step[]
  /** Whether it continues from nodes of others, again and again. */
  readonly sides: readonly number[]
  /** The request at which it crashes, if it ever does. */
  readonly crash: { readonly at: number; readonly after: boolean }
}

const sides = fc.array(fc.integer({ min: 0, max: 1 }), { minLength: 1, maxLength: 9 })

function drawn(from: readonly number[]): () => number {
  let drawn = 0
  return () => from[drawn++ % from.length]!
}

const someProcess: fc.Arbitrary<Process> = fc.record({
  sides,
  steps: fc.array(fc.constantFrom<Step>('save', 'save', 'save', 'again', 'drop', 'list'), {
    minLength: 1,
    maxLength: 6,
  }),
  crash: fc.record({
    at: fc.oneof(fc.constant(Infinity), fc.integer({ min: 1, max: 80 })),
    after: fc.boolean(),
  }),
})

/** What every reader must find: tickets whose save has resolved, and that no caller has begun to drop. */
class Model {
  readonly sure = new Set<string>()
  readonly faults: string[] = []

  async run(
    name: string,
    steps: readonly Step[],
    store: TicketStore,
    index: TicketIndex,
  ): Promise<void> {
    const mine: string[] = []
    for (const [n, step] of steps.entries()) {
      if (step === 'save') await this.#save(`${name}.${n}`, store, index, mine)
      else if (step === 'again') await this.#save(mine.at(-1) ?? `${name}.0`, store, index, mine)
      else if (step === 'drop') await this.#drop(mine.shift(), store, index)
      else await this.#list(name, index)
    }
  }

  async #save(id: string, store: TicketStore, index: TicketIndex, mine: string[]): Promise<void> {
    await store.set(id, ticketOf(id))
    await index.add(id)
    this.sure.add(id)
    if (!mine.includes(id)) mine.push(id)
  }

  async #drop(id: string | undefined, store: TicketStore, index: TicketIndex): Promise<void> {
    if (id === undefined) return
    this.sure.delete(id)
    await store.delete(id)
    await index.remove(id)
  }

  async #list(who: string, index: TicketIndex): Promise<void> {
    const before = [...this.sure]
    const found = await index.ids()
    const missed = before.filter((id) => this.sure.has(id) && !found.has(id))
    if (missed.length > 0) this.faults.push(`${who} missed ${missed.join(', ')}`)
  }
}

describe('the index of tickets', () => {
  test('loses no id, whoever writes, reads, stalls or crashes meanwhile', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(someProcess, { minLength: 2, maxLength: 7 }),
        fc.integer({ min: 1, max: 3 }),
        async (scheduler, processes, levels) => {
          const map = new Map<string, unknown>()
          const model = new Model()
          const runs = processes.map((each, n) => {
            const store = slowStore(scheduler, map, each.crash)
            const index = new TicketIndex(store, levels, drawn(each.sides))
            return Promise.race([model.run(`p${n}`, each.steps, store, index), store.crashed])
          })
          await scheduler.waitFor(Promise.all(runs))
          const found = await new TicketIndex(plainStore(map), levels).ids()
          expect(model.faults).toEqual([])
          expect([...model.sure].filter((id) => !found.has(id))).toEqual([])
        },
      ),
      { numRuns: 120 },
    )
  })

  test('gives a node to one writer only', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(sides, { minLength: 2, maxLength: 8 }),
        async (scheduler, writers) => {
          const map = new Map<string, unknown>()
          const adding = writers.map(async (each, n) => {
            const store = slowStore(scheduler, map)
            await store.set(`t${n}`, ticketOf(`t${n}`))
            await new TicketIndex(store, 9, drawn(each)).add(`t${n}`)
          })
          await scheduler.waitFor(Promise.all(adding))
          fc.pre(!map.has('drainable=0.shut')) // all on one side, again and again
          const lists = [...map].filter(([key]) => key.endsWith('.ids')).map(([, value]) => value)
          expect(lists).toHaveLength(writers.length)
          expect(lists).toEqual(expect.arrayContaining(writers.map((_, n) => ({ ids: [`t${n}`] }))))
        },
      ),
      { numRuns: 100 },
    )
  })

  test('keeps one small key for a tree of finished writers', async () => {
    const map = new Map<string, unknown>()
    await saved(map, 'stays', 2)
    for (let n = 0; n < 100; n += 1) {
      const index = await saved(map, `t${n}`, 2)
      map.delete(`t${n}`)
      if (n % 2 === 0) await index.remove(`t${n}`) // tickets of the others are dropped by another process
    }
    const own = [...map.keys()].filter((key) => key.startsWith('drainable='))
    const marks = own.filter((key) => key.endsWith('.shut'))
    expect(marks.length).toBeGreaterThan(100 / 3)
    expect(own.length - marks.length).toBeLessThanOrEqual(1 + 3 * 3)
    expect(await new TicketIndex(plainStore(map), 2).ids()).toContain('stays')
  })

  test('takes over only what is still there', async () => {
    const map = new Map<string, unknown>()
    await saved(map, 'stays', 2)
    await saved(map, 'gone', 2)
    map.delete('gone')
    await saved(map, 'next', 2)
    expect(map.get('drainable=1.1.ids')).toEqual({ ids: ['next', 'stays'] })
    expect([...map.keys()].filter((key) => key.startsWith('drainable=0'))).toEqual([
      'drainable=0.shut',
    ])
  })

  test('moves a writer whose tree was removed', async () => {
    const map = new Map<string, unknown>()
    const first = await saved(map, 'first', 2)
    await saved(map, 'second', 2)
    await saved(map, 'third', 2)
    map.set('new', ticketOf('new'))
    await first.add('new')
    expect(await listed(map, 2)).toEqual(['first', 'new', 'second', 'third'])
  })

  test('leaves no list in a tree that was removed meanwhile', async () => {
    const draws = fc.array(sides, { minLength: 8, maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), draws, async (scheduler, drawnFor) => {
        const map = new Map<string, unknown>()
        const writers = drawnFor.map(
          (from) => new TicketIndex(slowStore(scheduler, map), 3, drawn(from)),
        )
        const saving = Array.from({ length: 24 }, async (_, n) => {
          map.set(`t${n}`, ticketOf(`t${n}`))
          await writers[n % 8]!.add(`t${n}`)
        })
        await scheduler.waitFor(Promise.all(saving))
        const shut = [...map.keys()].filter((key) => key.endsWith('.shut'))
        const trees = shut.map((key) => key.slice(0, -'shut'.length))
        const left = [...map.keys()].filter((key) => trees.some((tree) => key.startsWith(tree)))
        expect(left).toEqual(shut)
        expect((await new TicketIndex(plainStore(map), 3).ids()).size).toBe(24)
      }),
      { numRuns: 80 },
    )
  })

  test('forgets an id of a writer whose tree was removed', async () => {
    const map = new Map<string, unknown>()
    const first = await saved(map, 'first', 2)
    await first.add('first')
    map.set('other', ticketOf('other'))
    await first.add('other')
    await saved(map, 'second', 2)
    await saved(map, 'third', 2)
    map.delete('first')
    await first.remove('first')
    expect(map.get('drainable=1.2.ids')).toEqual({ ids: ['other'] })
    expect(await listed(map, 2)).toContain('other')
  })

  test('is found past removed trees after a late write of an old floor', async () => {
    const map = new Map<string, unknown>()
    for (const id of ['a', 'b', 'c', 'd', 'e']) await saved(map, id, 2)
    expect(map.get('drainable=floor')).toEqual({ tree: 2 })
    map.set('drainable=floor', { tree: 0 })
    expect(await listed(map, 2)).toEqual(['a', 'b', 'c', 'd', 'e'])
    await saved(map, 'f', 2)
    await saved(map, 'g', 2)
    expect(map.get('drainable=floor')).toEqual({ tree: 3 })
    expect(await listed(map, 2)).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
  })

  test('removes what a writer left that crashed during a removal', async () => {
    const map = new Map<string, unknown>()
    for (const id of ['a', 'b']) await saved(map, id, 2)
    const before = structuredClone(map)
    await saved(map, 'c', 2)
    for (const [key, value] of before) map.set(key, value) // as if nothing had been deleted
    map.delete('drainable=floor')
    for (const id of ['d', 'e']) await saved(map, id, 2)
    expect([...map.keys()].filter((key) => /=[01]/.test(key))).toEqual([
      'drainable=0.shut',
      'drainable=1.shut',
    ])
    expect(await listed(map, 2)).toEqual(['a', 'b', 'c', 'd', 'e'])
  })

  test('is read whole while a tree is removed', async () => {
    const map = new Map<string, unknown>()
    await saved(map, 'a', 1)
    const plain = plainStore(map)
    let cleared = false
    const index = new TicketIndex(
      {
        ...plain,
        async get(key) {
          if (key === 'drainable=0.1.last' && !cleared) {
            cleared = true
            await saved(map, 'b', 1)
          }
          return plain.get(key)
        },
      },
      1,
    )
    expect([...(await index.ids())].sort()).toEqual(['a', 'b'])
  })

  test('leaves a node that another client has written into', async () => {
    const map = new Map<string, unknown>()
    const index = await saved(map, 'mine')
    map.set('drainable=0.1.ids', { ids: ['theirs'] })
    await index.add('mine')
    expect(await listed(map)).toEqual(['mine', 'theirs'])
  })

  test.each(['shut', 'floor', 'last', 'door', 'ids'])(
    'lists a ticket whose save was retried after its %s failed',
    async (name) => {
      for (const verb of ['get', 'set'] as const) {
        for (let nth = 1; nth <= 6; nth += 1) {
          const map = new Map<string, unknown>()
          for (const id of ['a', 'b']) await saved(map, id, 2)
          map.set('c', ticketOf('c'))
          const index = new TicketIndex(failing(map, verb, name, nth), 2, () => 0)
          await index.add('c').catch(() => index.add('c'))
          expect(await listed(map, 2)).toEqual(['a', 'b', 'c'])
        }
      }
    },
  )

  test('forgets nothing while the store finds nothing', async () => {
    const map = new Map<string, unknown>()
    for (const id of ['a', 'b']) await saved(map, id, 2)
    map.set('c', ticketOf('c'))
    const plain = plainStore(map)
    let down = false
    const index = new TicketIndex(
      {
        ...plain,
        async get(key) {
          if (key === 'a' && map.has('drainable=0.shut')) down = true
          if (!down) return plain.get(key)
          if (key.startsWith('drainable=')) down = false // the outage is over after this answer
          return undefined
        },
      },
      2,
      () => 0,
    )
    await expect(index.add('c')).rejects.toMatchObject({ code: 'TICKET_INVALID' })
    expect(await listed(map, 2)).toEqual(['a', 'b'])
  })

  test('counts a damaged key as present', async () => {
    const map = new Map<string, unknown>()
    await saved(map, 'a')
    map.set('drainable=floor', 'garbage')
    map.set('drainable=0.1.last', '{')
    map.set('drainable=0.2.last', 17)
    map.set('drainable=0.2.ids', { ids: 'none' })
    await saved(map, 'b')
    expect(await listed(map)).toEqual(['a', 'b'])
  })

  test('asks three times in an empty store', async () => {
    const keys: string[] = []
    const store = plainStore(new Map())
    const index = new TicketIndex({
      ...store,
      get: (key) => {
        keys.push(key)
        return store.get(key)
      },
    })
    expect(await index.ids()).toEqual(new Set())
    expect(keys).toEqual(['drainable=floor', 'drainable=0.1.last', 'drainable=0.shut'])
  })

  test('rejects a store that answers everything with one value', async () => {
    const store: TicketStore = {
      get: async () => ({ ok: true }),
      set: async () => true,
      delete: async () => true,
    }
    await expect(new TicketIndex(store).add('a')).rejects.toMatchObject({ code: 'TICKET_INVALID' })
  })
})

/** One more process, on the left wherever it can choose: it writes a ticket, and that is listed. */
async function saved(map: Map<string, unknown>, id: string, levels = 9): Promise<TicketIndex> {
  const index = new TicketIndex(plainStore(map), levels, () => 0)
  map.set(id, ticketOf(id))
  await index.add(id)
  return index
}

/** A store whose nth request of a kind for a key that ends so is answered by an error. */
function failing(
  map: Map<string, unknown>,
  verb: 'get' | 'set',
  name: string,
  nth: number,
): TicketStore {
  const plain = plainStore(map)
  let asked = 0
  const fail = (key: string): void => {
    if (key.endsWith(name) && ++asked === nth) throw new Error(`no ${verb} of ${key}`)
  }
  return {
    ...plain,
    async get(key) {
      if (verb === 'get') fail(key)
      return plain.get(key)
    },
    async set(key, value) {
      if (verb === 'set') fail(key)
      return plain.set(key, value)
    },
  }
}

async function listed(map: Map<string, unknown>, levels = 9): Promise<string[]> {
  return [...(await new TicketIndex(plainStore(map), levels).ids())].sort()
}
