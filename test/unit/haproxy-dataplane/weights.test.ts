/** A weight of 0 that keeps what backup servers hold, and who knows the weight of before. */
import type { HaproxyDataplaneOptions } from 'drainable/haproxy-dataplane'
import type { Json } from 'drainable/provider'
import type { DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { change, connect, present, rig } from '../../support/dataplane.js'

const WEB1 = { pool: 'web', member: 'web1' }
const SPARE = { pool: 'web', member: 'spare' }
const GENTLE = { maintCuts: false } as const
const config = (option: string, backup = 'backup'): string => `backend web
  server web1 127.0.0.1:8001 ${option} weight 7
  server spare 127.0.0.1:8002 ${backup}
`
const CUTS = config('on-marked-up shutdown-backup-sessions')

const back = (expected: 'drain' | 'maint', to: 'ready' | 'drain', native?: Json) =>
  ({ kind: 'restore', ref: WEB1, expect: expected, to, ...(native && { native }) }) as const
const remove = { kind: 'remove', ref: WEB1 } as const

/** The weights that were set at run time. */
function weights({ requests }: DataplaneFake): unknown[] {
  return requests.flatMap(({ method, path, body }) =>
    method === 'PUT' && path.includes('/runtime/') && body !== null && typeof body === 'object'
      ? 'weight' in body
        ? [body.weight]
        : []
      : [],
  )
}

/** A server that left maint while its backup server was at work, and is drained. */
async function lowered(way: string, options: Partial<HaproxyDataplaneOptions>) {
  const r = await rig({ config: CUTS, version: '3.4' }, options)
  const { native } = await present(r.lb, WEB1)
  await r.fake.occupy(SPARE)
  if (way === 'an undo to drain') {
    await r.fake.setBehind(WEB1, 'maint')
    expect(await change(r.lb, back('maint', 'drain'))).toMatchObject({ status: 'applied' })
  } else {
    await r.fake.setBehind(WEB1, 'drain')
    const end = await r.fake.occupy(WEB1)
    expect(await change(r.lb, remove)).toMatchObject({ status: 'rejected' })
    await end()
  }
  expect((await present(r.lb, WEB1)).own).toBe('drain')
  expect(weights(r.fake)).toEqual([0])
  return { ...r, native: native! }
}

const WAYS = ['an undo to drain', 'a refused removal']

describe.concurrent.each([
  ['', GENTLE],
  ['durably, ', { ...GENTLE, durable: true }],
] as const)('%sa weight of 0 that keeps what backup servers hold', (_, options) => {
  test.each(WAYS)('after %s is given back by the opening, and not before', async (way) => {
    await using r = await lowered(way, options)
    expect(await change(r.lb, back('drain', 'ready'))).toMatchObject({ status: 'applied' })
    expect(await present(r.lb, WEB1)).toMatchObject({ own: 'ready', weight: 7, serves: true })
  })

  test.each(WAYS)('after %s is known to another process', async (way) => {
    await using r = await lowered(way, options)
    await using other = connect(r.fake, options)
    expect(await change(other, back('drain', 'ready'))).toMatchObject({ status: 'applied' })
    expect(await present(other, WEB1)).toMatchObject({ own: 'ready', weight: 7, serves: true })
  })

  test.each(WAYS)('after %s is known to another process by the ticket', async (way) => {
    await using r = await lowered(way, options)
    await using other = connect(r.fake, options)
    const native = { ...(r.native as object), weight: 5 }
    expect(await change(other, back('drain', 'ready', native))).toMatchObject({ status: 'applied' })
    expect(await present(other, WEB1)).toMatchObject({ own: 'ready', weight: 5, serves: true })
  })
})

test('a weight of 0 on an open server is given back after a kill', async () => {
  await using r = await rig({ config: CUTS, version: '3.4' }, GENTLE)
  await r.fake.run('set server web/web1 weight 0')
  expect((await present(r.lb, WEB1)).own).toBe('drain')
  expect(await change(r.lb, back('drain', 'ready'))).toMatchObject({ status: 'applied' })
  expect(await present(r.lb, WEB1)).toMatchObject({ own: 'ready', weight: 7, serves: true })
})

test('a weight of 0 is given back at once where a refused removal opens the server again', async () => {
  await using r = await rig({ config: CUTS, version: '3.4' }, GENTLE)
  await r.fake.occupy(SPARE)
  await r.fake.occupy(WEB1)
  expect(await change(r.lb, remove)).toMatchObject({ status: 'rejected' })
  expect(weights(r.fake)).toEqual([0, 7])
  expect(await present(r.lb, WEB1)).toMatchObject({ own: 'ready', weight: 7, serves: true })
})

test('a weight that another client has given since is kept', async () => {
  await using r = await lowered('an undo to drain', GENTLE)
  await r.fake.run('set server web/web1 weight 3')
  expect(await change(r.lb, back('drain', 'ready'))).toMatchObject({ status: 'applied' })
  expect(await present(r.lb, WEB1)).toMatchObject({ own: 'ready', weight: 3, serves: true })
})

describe.concurrent('a weight of 0 that another client has set', () => {
  test.each([
    ['no option that cuts', config(''), '3.4'],
    ['no backup server', config('on-marked-up shutdown-backup-sessions', ''), '3.4'],
    ['an API that sets no weights', CUTS, '3.2'],
    ['weight 0 in the file', CUTS.replace('weight 7', 'weight 0'), '3.4'],
  ])('is left alone with %s', async (_, text, version) => {
    await using r = await rig({ config: text, version }, GENTLE)
    await r.fake.run('set server web/web1 weight 0')
    await r.fake.setBehind(WEB1, 'drain')
    const native = { weight: 7 }
    expect(await change(r.lb, back('drain', 'ready', native))).toMatchObject({
      status: 'rejected',
      error: { code: 'UNSUPPORTED' },
    })
    expect((await present(r.lb, WEB1)).serves).toBe(false)
  })
})
