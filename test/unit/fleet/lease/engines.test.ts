import { describe, expect, it } from 'vitest'
import { natsLease, redisLease, type Lease, type NatsEntryLike, type NatsKvLike } from 'drainable'
import { fakeClock, type FakeClock } from 'drainable/testing'

const TTL = 10_000

/** A bucket with compare and set, as a NATS server has it. */
class Bucket implements NatsKvLike {
  #revision = 40
  entry: { operation: string; revision: number; data: string } | undefined
  /** What happens after the next reading, before its answer is used. */
  meanwhile: (() => void) | undefined
  /** The next writing is done, and its answer lost. */
  loseAnswer = false

  async get(): Promise<NatsEntryLike | null> {
    const { entry } = this
    const { meanwhile } = this
    this.meanwhile = undefined
    meanwhile?.()
    return entry === undefined ? null : { ...entry, string: () => entry.data }
  }

  async create(key: string, data: string): Promise<number> {
    if (this.entry?.operation === 'PUT') throw new Error('wrong last sequence: 1')
    return this.write(data)
  }

  async update(key: string, data: string, revision: number): Promise<number> {
    if (this.entry?.revision !== revision) throw new Error('wrong last sequence')
    return this.write(data)
  }

  write(data: string): number {
    this.#revision += 3 // other keys of the bucket count too
    this.entry = { operation: 'PUT', revision: this.#revision, data }
    if (!this.loseAnswer) return this.#revision
    this.loseAnswer = false
    throw new Error('TIMEOUT')
  }
}

function ctx(clock: FakeClock) {
  return { clock, signal: new AbortController().signal }
}

describe('natsLease', () => {
  function setUp(): { clock: FakeClock; bucket: Bucket; a: Lease; b: Lease } {
    const bucket = new Bucket()
    const clock = fakeClock()
    return {
      clock,
      bucket,
      a: natsLease(bucket, { key: 'edge' }),
      b: natsLease(bucket, { key: 'edge' }),
    }
  }

  it('is granted to another once one revision stood for its whole time', async () => {
    const { clock, a, b } = setUp()
    const first = await a.acquire('a', TTL, ctx(clock))
    expect(first).toEqual({ granted: true, fence: 43 })
    expect(await b.acquire('b', TTL, ctx(clock))).toEqual({ granted: false, holder: 'a' })
    await clock.advance(TTL - 1)
    expect(await a.renew({ holder: 'a', fence: 43 }, TTL, ctx(clock))).toBe(true)
    expect(await b.acquire('b', TTL, ctx(clock))).toEqual({ granted: false, holder: 'a' })
    await clock.advance(TTL)
    const second = await b.acquire('b', TTL, ctx(clock))
    expect(second).toEqual({ granted: true, fence: 49 })
    expect(await a.renew({ holder: 'a', fence: 43 }, TTL, ctx(clock))).toBe(false)
  })

  it('is free at once when its holder gives it up, and only then', async () => {
    const { clock, a, b } = setUp()
    await a.acquire('a', TTL, ctx(clock))
    await b.release({ holder: 'b', fence: 43 }, ctx(clock))
    await a.release({ holder: 'a', fence: 42 }, ctx(clock))
    expect((await b.acquire('b', TTL, ctx(clock))).granted).toBe(false)
    await a.release({ holder: 'a', fence: 43 }, ctx(clock))
    expect((await b.acquire('b', TTL, ctx(clock))).granted).toBe(true)
  })

  it('is granted to the first writer of two that read the same', async () => {
    const { clock, bucket, a } = setUp()
    bucket.meanwhile = () => bucket.write(JSON.stringify({ holder: 'b', ttl: TTL }))
    expect(await a.acquire('a', TTL, ctx(clock))).toEqual({ granted: false, holder: 'b' })
  })

  it('keeps its number if the answer that granted it was lost', async () => {
    const { clock, bucket, a } = setUp()
    bucket.loseAnswer = true
    const first = await a.acquire('a', TTL, ctx(clock)).catch(() => undefined)
    expect(first?.granted).not.toBe(true)
    expect(await a.acquire('a', TTL, ctx(clock))).toEqual({ granted: true, fence: 43 })
    expect(await a.renew({ holder: 'a', fence: 43 }, TTL, ctx(clock))).toBe(true)
  })

  it('refuses an entry that is not a lease', async () => {
    const { clock, bucket, a } = setUp()
    bucket.write('hello')
    await expect(a.acquire('a', TTL, ctx(clock))).rejects.toMatchObject({ code: 'MALFORMED_REPLY' })
  })
})

describe('the options of a lease', () => {
  const client = { eval: async () => [1, '5'] }

  it.each([
    ['no client', () => redisLease(undefined as never, { key: 'x' }), /client/],
    ['an empty key', () => redisLease(client, { key: '' }), /key/],
    ['a key with a space', () => redisLease(client, { key: 'a b' }), /key/],
    ['no bucket', () => natsLease({} as never, { key: 'x' }), /get, create, update/],
    ['a bad key', () => natsLease(new Bucket(), { key: 'a\n' }), /key/],
  ])('are refused: %s', (_, make, words) => {
    expect(make).toThrow(words)
  })

  it('put both keys of Redis into one slot', async () => {
    const asked: string[][] = []
    const spy = { eval: async (_: string, o: { keys: string[] }) => (asked.push(o.keys), [1, '5']) }
    const clock = fakeClock()
    await redisLease(spy, { key: 'edge' }).acquire('a', TTL, ctx(clock))
    await redisLease(spy, { key: 'a{b}c' }).acquire('a', TTL, ctx(clock))
    expect(asked).toEqual([
      ['{edge}', '{edge}:fence'],
      ['a{b}c', 'a{b}c:fence'],
    ])
  })
})

describe.each([
  ['natsLease', natsLease, new Bucket()],
  ['redisLease', redisLease, { eval: () => Promise.resolve(0) }],
] as const)('%s refuses', (name, make, engine) => {
  const open = make as (engine: unknown, options?: unknown) => Lease

  it.each([undefined, {}, { key: '' }, { key: 'a b' }])('%j for its options', (options) => {
    expect(() => open(engine, options)).toThrow(
      `${name}(): key: expected 1 to 200 letters, digits or _ . / : = { } -, such as { key: 'drainable/edge' }`,
    )
  })

  it('a text in place of options', () => {
    expect(() => open(engine, 'edge')).toThrow(
      `${name}(): the options: expected an object with options such as 'key', found string`,
    )
  })
})
