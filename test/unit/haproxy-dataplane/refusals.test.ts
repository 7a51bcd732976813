import type { Change } from 'drainable/provider'
import type { HaproxyDataplaneOptions } from 'drainable/haproxy-dataplane'
import type { DataplaneFake, FakeFailure, FakeOptions } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { change, context, rig } from '../../support/dataplane.js'

const WEB1 = { pool: 'web', member: 'web1' }
const nine = { pool: 'web', member: 'web9' }
const hold = { kind: 'hold', ref: WEB1, to: 'drain' } as const
const restore = { kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' } as const
const remove = { kind: 'remove', ref: WEB1 } as const
const add = { kind: 'add', ref: nine, address: '10.0.0.9', port: 80 } as const

const status = (match: RegExp, code: number, message = 'no'): FakeFailure => ({
  match,
  how: 'status',
  status: code,
  message,
})
const PUT = /^PUT .*runtime/

interface Row {
  readonly of: string
  readonly change: Change
  readonly is: readonly [status: 'rejected' | 'unknown', code: string, retryable: boolean]
  readonly fault?: FakeFailure
  readonly before?: (fake: DataplaneFake) => unknown
  readonly fake?: FakeOptions
  readonly options?: Partial<HaproxyDataplaneOptions>
}

/** `retryable`: the same change can be carried out later without a new decision. */
const ROWS: readonly Row[] = [
  {
    of: 'a server that is not there',
    change: { ...hold, ref: nine },
    is: ['rejected', 'NOT_FOUND', false],
  },
  {
    of: 'a name that can not be',
    change: { ...hold, ref: { pool: 'web', member: 'a b' } },
    is: ['rejected', 'NOT_FOUND', false],
  },
  {
    of: 'a server that is another one now',
    change: { ...hold, identity: '10.9.9.9:1' },
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'a hold that the API takes for done',
    change: { ...hold, to: 'maint' },
    before: (fake) => fake.setMask(WEB1, 12),
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'a restore of a state that another client has changed',
    change: restore,
    before: (fake) => fake.setBehind(WEB1, 'maint'),
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'a restore of a state that contradicts itself',
    change: restore,
    fake: { pools: { web: [{ name: 'web1', track: 'web/web2' }, 'web2'] } },
    before: (fake) => fake.setMask(WEB1, 80),
    is: ['rejected', 'CONFLICT', true],
  },
  {
    of: 'a restore that may cut what backup servers hold',
    change: { ...restore, expect: 'maint' },
    fake: {
      config: `backend web
  server web1 127.0.0.1:8001 on-marked-up shutdown-backup-sessions
  server spare 127.0.0.1:8002 backup
`,
    },
    before: async (fake) => {
      await fake.setBehind(WEB1, 'maint')
      await fake.occupy({ pool: 'web', member: 'spare' })
    },
    is: ['rejected', 'CONFLICT', true],
  },
  {
    of: 'a durable restore of an unknown weight',
    change: restore,
    fake: { config: 'backend web\n  server web1 127.0.0.1:8001 weight 0\n' },
    options: { durable: true },
    before: (fake) => fake.setBehind(WEB1, 'drain'),
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'a proxy that lets no client',
    change: hold,
    fault: status(PUT, 403),
    is: ['rejected', 'FORBIDDEN', false],
  },
  {
    of: 'a refusal of HAProxy',
    change: hold,
    fault: status(PUT, 500),
    is: ['rejected', 'REJECTED', false],
  },
  { of: 'a 409', change: hold, fault: status(PUT, 409), is: ['rejected', 'CONFLICT', true] },
  { of: 'a 423', change: hold, fault: status(PUT, 423), is: ['rejected', 'CONFLICT', true] },
  { of: 'a 429', change: hold, fault: status(PUT, 429), is: ['rejected', 'CONFLICT', true] },
  {
    of: 'a 404 for a server that is there',
    change: hold,
    fault: status(PUT, 404, 'no data for web/web1: not found'),
    is: ['unknown', 'CONFLICT', true],
  },
  {
    of: 'a HAProxy that the API can not reach for a moment',
    change: hold,
    fault: status(PUT, 500, 'dial unix /run/lb/master.sock: connect: connection refused'),
    is: ['unknown', 'UNREACHABLE', true],
  },
  {
    of: 'a gateway without a server',
    change: hold,
    fault: status(PUT, 502),
    is: ['unknown', 'UNREACHABLE', true],
  },
  {
    of: 'a hold whose answer is lost',
    change: hold,
    fault: { match: PUT, how: 'reset' },
    is: ['unknown', 'CONNECTION_LOST', true],
  },
  {
    of: 'a configuration that others write all the time',
    change: hold,
    fault: status(/^PUT .*configuration/, 409, 'version mismatch'),
    options: { durable: true },
    is: ['rejected', 'CONFLICT', true],
  },
  {
    of: 'a cut, which this API has no call for',
    change: { kind: 'terminate', ref: WEB1 },
    is: ['rejected', 'UNSUPPORTED', false],
  },
  {
    of: 'a removal of a server with connections',
    change: remove,
    before: (fake) => fake.occupy(WEB1),
    is: ['rejected', 'CONFLICT', true],
  },
  {
    of: 'a removal of a server that others point to',
    change: remove,
    fault: status(
      /^DELETE/,
      500,
      'This server cannot be removed at runtime due to other configuration elements pointing to it.',
    ),
    is: ['rejected', 'REJECTED', false],
  },
  {
    of: 'a removal by a reload that HAProxy refuses',
    change: remove,
    fake: { reloadDelay: 10 },
    options: { membership: 'configuration' },
    before: (fake) => fake.refuseReload('unknown keyword'),
    is: ['rejected', 'REJECTED', false],
  },
  {
    of: 'an addition of a name that has another address',
    change: { ...add, ref: WEB1 },
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'an addition that another client was faster with',
    change: add,
    fault: status(/^POST/, 409, 'Already exists a server with the same name in backend.'),
    is: ['rejected', 'CONFLICT', true],
  },
  {
    of: 'an addition to a backend that is not there',
    change: { ...add, ref: { pool: 'none', member: 'web9' } },
    is: ['rejected', 'NOT_FOUND', false],
  },
  {
    of: 'an addition with a port that is none',
    change: { ...add, port: 70_000 },
    is: ['rejected', 'REJECTED', false],
  },
]

describe.concurrent('a refusal, and whether the change can succeed later', () => {
  test.each(ROWS)('$of', async ({ change: one, is, fault, before, fake, options }) => {
    await using r = await rig(fake, options)
    await before?.(r.fake)
    if (fault) r.fake.fail(fault)
    const [status, code, retryable] = is
    expect(await change(r.lb, one)).toMatchObject({ status, error: { code, retryable } })
  })
})

test('a closed provider refuses once and for all', async () => {
  await using r = await rig()
  await r.lb.close()
  await expect(r.lb.apply([hold], context())).rejects.toMatchObject({ retryable: false })
})
