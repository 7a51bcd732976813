import { setImmediate } from 'node:timers/promises'
import type { Change, ChangeResult } from 'drainable/provider'
import { DrainableError } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { carefulApply } from '../../../src/kit/careful-apply.js'
import type { Begun, CarefulAdapter, SeenMember } from '../../../src/kit/change.js'
import { A, add, B, context, hold, lost, restore, Rows, row } from './rows.js'

const rejected = (code: string, retryable = false): object => ({
  status: 'rejected',
  error: { code, retryable, provider: 'rows', ref: A },
})

describe('a change that is not sent', () => {
  const cases: readonly (readonly [string, Partial<SeenMember> | undefined, Change, object])[] = [
    ['of a member that is not there', undefined, hold(), rejected('NOT_FOUND')],
    ['of another identity', {}, { ...hold(), identity: 'two' }, rejected('CONFLICT')],
    ['of a state that is not known', { own: 'unknown' }, hold(), rejected('CONFLICT')],
    [
      'of a doubt that passes by itself',
      { own: 'unknown', passing: true },
      hold(),
      rejected('CONFLICT', true),
    ],
    ['an undo of what others changed', { own: 'maint' }, restore(), rejected('CONFLICT')],
    ['an undo of an unknown state', { own: 'unknown' }, restore(), rejected('CONFLICT')],
    ['a hold that is so already', { own: 'drain' }, hold(), { status: 'unchanged' }],
    ['a hold below what is found', { own: 'maint' }, hold(), { status: 'unchanged' }],
    ['an undo that is so already', {}, restore(), { status: 'unchanged' }],
    ['an add of what is there', {}, add('10.0.0.1'), { status: 'unchanged' }],
    ['an add in another spelling', {}, add('::ffff:10.0.0.1'), { status: 'unchanged' }],
    ['an add of a name that is taken', {}, add('10.0.0.2'), rejected('CONFLICT')],
    ['a cut where nothing can be cut', {}, { kind: 'terminate', ref: A }, rejected('UNSUPPORTED')],
  ]
  test.each(cases)('%s', async (_, found, change, result) => {
    const rows = new Rows('b')
    if (found !== undefined) rows.rows.set('a', row(found))
    expect(await rows.one(change)).toMatchObject({ ref: A, ...result })
    expect(rows.sent).toEqual([])
  })

  test('to maint without a maint is refused either way, without a look', async () => {
    const rows = new Rows('a')
    const back = { kind: 'restore', ref: A, expect: 'maint', to: 'ready' } as const
    const results = await rows.apply([hold(A, 'maint'), back], { maint: 'hold drain' })
    expect(results).toMatchObject([rejected('UNSUPPORTED'), rejected('UNSUPPORTED')])
    expect(results[0]).toHaveProperty('error.message', expect.stringContaining('hold drain'))
    expect(rows.looks).toBe(0)
  })

  test('is told with what was found and what was expected', async () => {
    const rows = new Rows()
    rows.rows.set('a', row({ own: 'maint', says: 'OUT OF SERVICE' }))
    expect(await rows.one(restore())).toHaveProperty(
      'error.message',
      "web/a is 'maint' (OUT OF SERVICE), expected 'drain': it was changed meanwhile; nothing was sent",
    )
  })
})

describe('changes of one call', () => {
  test('share one look, and are sent in order', async () => {
    const rows = new Rows('a', 'b')
    const results = await rows.apply([hold(B), hold(A)])
    expect(results).toEqual([
      { ref: B, status: 'applied' },
      { ref: A, status: 'applied' },
    ])
    expect(rows.sent).toEqual(['b drain', 'a drain'])
    expect(rows.looks).toBe(1)
  })

  test('to one member see what the one before has done', async () => {
    const rows = new Rows('a', 'b')
    const results = await rows.apply([hold(), restore(), hold(B), restore()])
    expect(results.map(({ status }) => status)).toEqual([
      'applied',
      'applied',
      'applied',
      'unchanged',
    ])
    expect(rows.sent).toEqual(['a drain', 'a ready', 'b drain'])
  })

  test('to two names of one object see each other too', async () => {
    const rows = new Rows()
    for (const member of ['a', 'b']) rows.rows.set(member, row({ object: 'svc1' }))
    await rows.apply([hold(A), hold(B)])
    expect(rows.looks).toBe(2)
  })

  test('are handed up one by one, as each is answered', async () => {
    const rows = new Rows('a', 'b')
    const handed: [number, ChangeResult, number][] = []
    const result = (i: number, one: ChangeResult): void => {
      handed.push([i, one, rows.sent.length])
    }
    const results = await rows.apply([hold(), hold(B)], {}, context({ result }))
    expect(handed).toEqual([
      [0, results[0], 1],
      [1, results[1], 2],
    ])
  })
})

describe('a lost answer', () => {
  test('is an unknown outcome with provider and ref', async () => {
    const rows = new Rows('a')
    expect(await rows.one(hold(), { hold: lost })).toMatchObject({
      status: 'unknown',
      error: {
        code: 'CONNECTION_LOST',
        provider: 'rows',
        ref: A,
        message: expect.stringMatching(/^web\/a: /) as unknown,
      },
    })
  })

  test('of another kind is a failure of the provider', async () => {
    const rows = new Rows('a')
    const result = await rows.one(hold(), { hold: () => Promise.reject(new TypeError('oops')) })
    expect(result).toMatchObject({ status: 'unknown', error: { code: 'PROVIDER_FAILED', ref: A } })
  })

  test('makes the look old, so the next change needs a new one', async () => {
    const rows = new Rows('a', 'b')
    const results = await rows.apply([hold(), hold(B)], {
      hold: async ({ ref }) => (ref === A ? lost() : rows.write(ref.member, 'drain')),
    })
    expect(results.map(({ status }) => status)).toEqual(['unknown', 'applied'])
    expect(rows.looks).toBe(2)
  })

  test('followed by a failed look leaves the rest unsent', async () => {
    const rows = new Rows('a', 'b')
    const adapter = rows.adapter()
    const results = await rows.apply([hold(), hold(B)], {
      hold: lost,
      look: (...of) => (rows.looks > 0 ? lost() : adapter.look(...of)),
    })
    expect(results.map(({ status }) => status)).toEqual(['unknown', 'rejected'])
  })

  test('is told from a thrown refusal', async () => {
    const refused = new DrainableError('FORBIDDEN', 'no right to do this')
    const result = await new Rows('a').one(hold(), { hold: () => Promise.reject(refused) })
    expect(result).toMatchObject(rejected('FORBIDDEN'))
  })
})

describe('before anything was sent', () => {
  test('a failed look is a refusal', async () => {
    const rows = new Rows('a')
    expect(await rows.one(hold(), { look: lost })).toMatchObject(rejected('CONNECTION_LOST', true))
  })

  test('an unreadable look is a refusal that may pass', async () => {
    const garbled = new DrainableError('MALFORMED_REPLY', 'no JSON')
    const look = (): Promise<never> => Promise.reject(garbled)
    expect(await new Rows('a').one(hold(), { look })).toMatchObject(
      rejected('MALFORMED_REPLY', true),
    )
  })

  test('a member that can not be told apart refuses its change alone', async () => {
    const rows = new Rows('a', 'b')
    const look: CarefulAdapter<SeenMember>['look'] = () =>
      Promise.resolve(({ ref }) => {
        if (ref.member === 'b') return rows.rows.get('b')
        throw new DrainableError('INVALID_OPTIONS', 'web/a means two members')
      })
    const results = await rows.apply([hold(A), hold(B)], { look })
    expect(results).toMatchObject([rejected('INVALID_OPTIONS'), { ref: B, status: 'applied' }])
    expect(rows.sent).toEqual(['b drain'])
  })

  test('an adapter can be a class', async () => {
    const adapter = Object.assign(new Rows('a').adapter(), {
      cuts: 0,
      terminate(this: { cuts: number }) {
        this.cuts += 1
        return { status: 'applied', terminated: this.cuts } as const
      },
    })
    const result = carefulApply(adapter, [{ kind: 'terminate', ref: A }], context())
    expect(await result).toMatchObject([{ status: 'applied', terminated: 1 }])
  })

  test('a closed provider throws', async () => {
    const closed = new DrainableError('CONNECTION_LOST', 'closed', { retryable: false })
    const call = new Rows('a').one(hold(), { look: () => Promise.reject(closed) })
    await expect(call).rejects.toBe(closed)
  })

  test('an abort refuses unsent changes, and keeps its reason', async () => {
    const rows = new Rows('a', 'b')
    const controller = new AbortController()
    const reason = { gaveUp: true }
    const handed: [number, string][] = []
    const call = rows.apply(
      [hold(), hold(B)],
      { hold: () => new Promise(() => queueMicrotask(() => controller.abort(reason))) },
      context({
        signal: controller.signal,
        result: (i, { status }) => handed.push([i, status]),
      }),
    )
    await expect(call).rejects.toBe(reason)
    expect(handed).toEqual([[1, 'rejected']])
  })

  test('an abort during the look sends nothing, whatever the look does', async () => {
    const rows = new Rows('a')
    const controller = new AbortController()
    const adapter = rows.adapter()
    const call = rows.apply(
      [hold()],
      {
        look: (...of) => {
          controller.abort('enough')
          return adapter.look(...of)
        },
      },
      context({ signal: controller.signal }),
    )
    await expect(call).rejects.toBe('enough')
    expect(rows.sent).toEqual([])
  })
})

describe('changes that begin and end together', () => {
  type Ends = readonly ('applied' | 'again')[]
  /** Begins every hold; `finish` answers with the next of these for each. */
  function together(rows: Rows, ends: Ends, batches: string[][] = []) {
    const left = [...ends]
    return {
      hold: () => Promise.resolve({ later: undefined as never }),
      async *finish(begun: readonly Begun<SeenMember, never>[]) {
        batches.push(begun.map(({ change }) => change.ref.member))
        for (const one of begun) {
          await setImmediate()
          const end = left.shift() ?? 'again'
          if (end === 'applied') rows.write(one.change.ref.member, 'drain')
          yield [one, end === 'again' ? end : { status: end }] as const
        }
      },
    }
  }

  test('are one batch', async () => {
    const rows = new Rows('a', 'b')
    const batches: string[][] = []
    const results = await rows.apply(
      [hold(), hold(B)],
      together(rows, ['applied', 'applied'], batches),
    )
    expect(results.map(({ status }) => status)).toEqual(['applied', 'applied'])
    expect(batches).toEqual([['a', 'b']])
  })

  test('are judged anew if another client was faster', async () => {
    const rows = new Rows('a', 'b')
    const batches: string[][] = []
    await rows.apply([hold(), hold(B)], together(rows, ['again', 'applied', 'applied'], batches))
    expect(batches).toEqual([['a', 'b'], ['a']])
    expect(rows.looks).toBe(2)
  })

  test('are refused if others are faster again and again', async () => {
    const rows = new Rows('a')
    const batches: string[][] = []
    const result = await rows.one(hold(), together(rows, [], batches))
    expect(result).toMatchObject(rejected('CONFLICT', true))
    expect(batches).toHaveLength(5)
  })

  test('are unknown if their results leave one out', async () => {
    const rows = new Rows('a')
    const begin = () => Promise.resolve({ later: undefined as never })
    const result = await rows.one(hold(), { hold: begin, async *finish() {} })
    expect(result).toMatchObject({ status: 'unknown', error: { code: 'PROVIDER_FAILED' } })
  })
})
