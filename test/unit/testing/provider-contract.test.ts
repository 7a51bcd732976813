import { describe, expect, test } from 'vitest'
import { DrainableError } from 'drainable/provider'
import { fakeProvider, providerContract } from 'drainable/testing'
import type { FakeProvider } from 'drainable/testing'
import { broken, openFake } from './fake-harness.js'
import { BREAKS } from './broken-providers.js'

describe('a provider with one fault fails the suite', () => {
  for (const [name, [wrap, found, options]] of Object.entries(BREAKS)) {
    test.concurrent(name, async () => {
      const cases = providerContract(() => openFake({ ...options, latency: 1 }, wrap))
      const judge = cases.filter((c) => found.test(c.name))
      expect(judge.length).toBeGreaterThan(0)
      const ends = await Promise.allSettled(judge.map((c) => c.run()))
      expect(ends.filter((end) => end.status === 'rejected')).not.toHaveLength(0)
    })
  }
})

test('every case has a time limit, and a name of its own', () => {
  const cases = providerContract(() => openFake())
  expect(new Set(cases.map((c) => c.name)).size).toBe(cases.length)
  expect(cases.every((c) => c.timeout >= 10_000)).toBe(true)
})

test('every case disposes of its harness, even when it fails', async () => {
  let open = 0
  const cases = providerContract(async () => {
    open++
    const harness = await openFake({}, (fake) =>
      broken(fake, { describe: () => Promise.reject(new Error('no')) }),
    )
    return {
      ...harness,
      [Symbol.asyncDispose]: async () => {
        open--
        await harness[Symbol.asyncDispose]()
      },
    }
  })
  for (const c of cases) await expect(c.run()).rejects.toThrow('no')
  expect(open).toBe(0)
})

test('a provider passes that hands up nothing, or everything', async () => {
  const silent = (fake: FakeProvider) =>
    broken(fake, {
      apply: (changes, { signal, clock }) => fake.apply(changes, { signal, clock }),
    })
  for (const wrap of [silent, (fake: FakeProvider) => fake]) {
    const cases = providerContract(() => openFake({}, wrap)).filter((c) => /hands up/.test(c.name))
    expect(cases).toHaveLength(2)
    for (const c of cases) await c.run()
  }
})

test('a provider passes whose errors of the network only have their code', async () => {
  const bare = (fake: FakeProvider) =>
    broken(fake, {
      observe: (refs, ctx) =>
        fake.observe(refs, ctx).catch(() => {
          throw Object.assign(new Error('connect refused'), { code: 'ECONNREFUSED' })
        }),
    })
  const cases = providerContract(() => openFake({}, bare))
  await cases.find((c) => /when the product can not be reached, and never/.test(c.name))?.run()
})

test('a harness without occupy is told so if the provider counts', async () => {
  const cases = providerContract(async () => {
    const harness = await openFake()
    delete (harness as { occupy?: unknown }).occupy
    return harness
  })
  const counting = cases.find((c) => /counts work/.test(c.name))
  await expect(counting?.run()).rejects.toThrow(/occupy/)
  expect(fakeProvider({ pools: {} }).requests).toEqual([])
})

const stays = (change: object) => (fake: FakeProvider) =>
  broken(fake, {
    observe: async (refs, ctx) => {
      const snapshot = await fake.observe(refs, ctx)
      return {
        ...snapshot,
        readings: snapshot.readings.map((r) => (r.present ? { ...r, ...change } : r)),
      }
    },
  })

const refuses = (fake: FakeProvider) =>
  broken(fake, {
    apply: (changes) =>
      Promise.resolve(
        changes.map(({ ref }) => {
          const error = new DrainableError('REJECTED', 'the disk of the balancer is full')
          return { ref, status: 'rejected', error } as const
        }),
      ),
  })

test.concurrent.each([
  ['the state that a member is in', stays({ own: 'maint' }), /expected 'ready', found 'maint'/],
  ['what a value is', stays({ serves: true }), /does not serve: expected false, found true/],
  [
    'why a change was refused',
    refuses,
    /every change is done, not: rejected \(REJECTED: the disk of the balancer is full\)/,
  ],
] as const)('a failed case says %s', async (_, wrap, words) => {
  const runs = providerContract(() => openFake({}, wrap)).map((c) => c.run())
  const ends = await Promise.allSettled(runs)
  const failures = ends.map((end) => (end.status === 'rejected' ? String(end.reason) : ''))
  expect(failures).toContainEqual(expect.stringMatching(words))
})

test('a failed case says what the balancer answered to the change', async () => {
  const locks = (fake: FakeProvider) =>
    broken(fake, {
      apply: async (changes, ctx) =>
        (await fake.apply(changes, ctx)).map(({ ref }) => ({
          ref,
          status: 'rejected' as const,
          error: new DrainableError('CONFLICT', 'the configuration is locked'),
        })),
    })
  const cases = providerContract(() => openFake({}, locks))
  for (const name of [/gives a refusal as a value/, /calls that are made side by side/]) {
    const judge = cases.find((one) => name.test(one.name))
    await expect(judge?.run()).rejects.toThrow('the configuration is locked')
  }
})

test('a failed case says how much work it found', async () => {
  const forgets = (fake: FakeProvider) =>
    broken(fake, {
      observe: async (refs, ctx) => {
        const snapshot = await fake.observe(refs, ctx)
        const readings = snapshot.readings.map((reading) => ({
          ...reading,
          scopes: reading.scopes.map((scope) =>
            scope.state === 'read' && reading.present && reading.own !== 'ready'
              ? { ...scope, active: 0 }
              : scope,
          ),
        }))
        return { ...snapshot, readings }
      },
    })
  const judge = providerContract(() => openFake({}, forgets)).find((one) =>
    /keeps the work, under drain/.test(one.name),
  )
  await expect(judge?.run()).rejects.toThrow('expected work in flight or queued, found 0')
})
