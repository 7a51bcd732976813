import type { Change } from 'drainable/provider'
import type { FakeFailure, HaproxyFake, FakeOptions } from 'drainable/testing/haproxy-runtime'
import type { HaproxyRuntimeOptions } from 'drainable/haproxy-runtime'
import { describe, expect, test } from 'vitest'
import { hurried, rig, WEB1, WEB2 } from './rig.js'

const hold = { kind: 'hold', ref: WEB1, to: 'drain' } as const
const restore = { kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' } as const
const remove = { kind: 'remove', ref: WEB1 } as const
const nine = { pool: 'web', member: 'web9' }
const add = { kind: 'add', ref: nine, address: '10.0.0.9', port: 80 } as const

const answer = (match: RegExp, text: string, times = 1): FakeFailure => ({
  match,
  how: 'status',
  body: text,
  times,
})

interface Row {
  readonly of: string
  readonly change: Change
  readonly is: readonly [status: 'rejected' | 'unknown', code: string, retryable: boolean]
  readonly fault?: FakeFailure
  readonly before?: (fake: HaproxyFake) => unknown
  readonly fake?: FakeOptions
  readonly options?: Partial<HaproxyRuntimeOptions>
}

/** `retryable`: the same change can be carried out later without a new decision. */
const ROWS: readonly Row[] = [
  {
    of: 'a server that is not there',
    change: { ...hold, ref: nine },
    is: ['rejected', 'NOT_FOUND', false],
  },
  {
    of: 'a server that is another one now',
    change: { ...hold, identity: '10.9.9.9:1' },
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'a restore of a state that another client has changed',
    change: restore,
    before: (fake) => fake.setBehind(WEB1, 'maint'),
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'a hold without rights',
    change: hold,
    fault: answer(/set server/, 'Permission denied'),
    is: ['rejected', 'FORBIDDEN', false],
  },
  {
    of: 'a hold in a process that is being replaced',
    change: hold,
    fault: answer(/set server/, 'Proxy is disabled.', 100),
    is: ['rejected', 'CONFLICT', true],
  },
  {
    of: 'a hold that takes followers below what must stay',
    change: hold,
    fake: {
      pools: {
        web: [{ name: 'web1', check: true }, 'web2'],
        api: [{ name: 'api1', track: 'web/web1' }],
      },
    },
    options: { keepFollowers: 1 },
    is: ['rejected', 'POOL_AT_MINIMUM', false],
  },
  {
    of: 'a hold whose answer is lost',
    change: hold,
    fault: { match: /set server/, how: 'reset', execute: true, times: 1 },
    is: ['unknown', 'CONNECTION_LOST', true],
  },
  {
    of: 'a hold that is never answered',
    change: hold,
    fault: { match: /set server/, how: 'silent', times: 1 },
    options: { replyTimeout: 5_000 }, // no pause, by the hurried clock; any other reply comes sooner, also under load
    is: ['unknown', 'CALL_TIMEOUT', true],
  },
  {
    of: 'a removal of a server with connections',
    change: remove,
    fake: { version: '2.6' },
    before: (fake) => fake.occupy(WEB1),
    is: ['rejected', 'CONFLICT', true],
  },
  {
    of: 'a removal of a server that others point to',
    change: remove,
    fault: answer(
      /^del server/,
      'This server cannot be removed at runtime due to other configuration elements pointing to it.',
    ),
    is: ['rejected', 'REJECTED', false],
  },
  {
    of: 'a removal of a server that another client takes out of maintenance',
    change: remove,
    fault: answer(/^del server/, 'Only servers in maintenance mode can be deleted.'),
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'an addition of a name that has another address',
    change: { ...add, ref: WEB2 },
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'an addition that another client was faster with',
    change: add,
    fault: answer(/^add server/, 'Already exists a server with the same name in backend.'),
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'an addition to a backend with a static algorithm',
    change: add,
    fault: answer(
      /^add server/,
      'Backend must use a dynamic load balancing to support dynamic servers.',
    ),
    is: ['rejected', 'UNSUPPORTED', false],
  },
  {
    of: 'an addition that this version does not know',
    change: add,
    fault: answer(/^add server/, 'Unknown command: add'),
    is: ['rejected', 'UNSUPPORTED', false],
  },
  {
    of: 'an addition in unknown words',
    change: add,
    fault: answer(/^add server/, 'The moon is in the wrong phase.'),
    is: ['rejected', 'REJECTED', false],
  },
  {
    of: 'an addition with an address that is none',
    change: { ...add, address: 'web9.example' },
    is: ['rejected', 'INVALID_OPTIONS', false],
  },
]

describe('a refusal, and whether the change can succeed later', () => {
  test.each(ROWS)('$of', async ({ change, is, fault, before, fake, options }) => {
    await using it = await rig(fake, options)
    await before?.(it.fake)
    if (fault) it.fake.fail(fault)
    const [result] = await it.lb.apply([change], hurried())
    const [status, code, retryable] = is
    expect(result).toMatchObject({ status, error: { code, retryable } })
  })
})

test('a closed provider refuses once and for all', async () => {
  await using it = await rig()
  await it.lb.close()
  await expect(it.lb.apply([hold], hurried())).rejects.toMatchObject({ retryable: false })
})
