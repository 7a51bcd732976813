import type { F5BigipOptions } from 'drainable/f5-bigip'
import type { Change } from 'drainable/provider'
import type { BigipFake, FakeFailure, FakeOptions } from 'drainable/testing/f5-bigip'
import { describe, expect, test } from 'vitest'
import { classify } from '../../../src/adapters/f5-bigip/codec/errors.js'
import { ctx, rig, WEB1, WEB2 } from './rig.js'

const hold = { kind: 'hold', ref: WEB1, to: 'drain' } as const
const restore = { kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' } as const
const remove = { kind: 'remove', ref: WEB1 } as const
const nine = { pool: '/Common/web', member: '/Common/10.0.0.9:80' }
const add = { kind: 'add', ref: nine, address: '10.0.0.9', port: 80 } as const

const answer = (match: RegExp, status: number, message = 'no'): FakeFailure => ({
  match,
  how: 'status',
  status,
  body: { code: status, message },
})
const PATCH = /^PATCH .*members/

interface Row {
  readonly of: string
  readonly change: Change
  readonly is: readonly [status: 'rejected' | 'unknown', code: string, retryable: boolean]
  readonly fault?: FakeFailure
  readonly before?: (fake: BigipFake) => unknown
  readonly fake?: FakeOptions
  readonly options?: Partial<F5BigipOptions>
}

/** `retryable`: the same change can be carried out later without a new decision. */
const ROWS: readonly Row[] = [
  {
    of: 'a member that is not there',
    change: { ...hold, ref: nine },
    is: ['rejected', 'NOT_FOUND', false],
  },
  {
    of: 'a member that is another one now',
    change: { ...hold, identity: '/Common/10.0.0.1:80 at 10.9.9.9 port 80' },
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'a name that means several members',
    change: { ...hold, ref: { pool: 'web', member: '10.0.0.1' } },
    fake: { pools: { web: ['10.0.0.1:80', '10.0.0.1:443'] } },
    is: ['rejected', 'INVALID_OPTIONS', false],
  },
  {
    of: 'a restore of a state that another client has changed',
    change: restore,
    before: (fake) => fake.setBehind(WEB1, 'maint'),
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'a member of an application service',
    change: hold,
    fake: { pools: { web: [{ name: '10.0.0.1:80', strict: true }] } },
    is: ['rejected', 'REJECTED', false],
  },
  {
    of: 'a hold without rights',
    change: hold,
    fault: answer(PATCH, 403),
    is: ['rejected', 'FORBIDDEN', false],
  },
  {
    of: 'a hold under a token without rights',
    change: hold,
    fault: answer(PATCH, 401, 'Authorization failed: user=eve resource=/mgmt/tm/ltm verb=PATCH'),
    is: ['rejected', 'FORBIDDEN', false],
  },
  {
    of: 'a control plane that restarts',
    change: hold,
    fault: answer(PATCH, 503),
    is: ['unknown', 'CONFLICT', true],
  },
  {
    of: 'a locked configuration',
    change: hold,
    fault: answer(PATCH, 423),
    is: ['unknown', 'CONFLICT', true],
  },
  {
    of: 'another operation in progress',
    change: hold,
    fault: answer(PATCH, 409, 'There is an active asynchronous task executing.'),
    is: ['unknown', 'CONFLICT', true],
  },
  {
    of: 'a member that is said not to be there while the device loads',
    change: hold,
    before: (fake) => fake.setStage('loading'),
    is: ['rejected', 'CONFLICT', true],
  },
  {
    of: 'a hold whose answer is lost',
    change: hold,
    fault: { match: PATCH, how: 'reset' },
    is: ['unknown', 'CONNECTION_LOST', true],
  },
  {
    of: 'a group with changes of others pending',
    change: hold,
    fake: { pair: true },
    options: { configSync: { group: 'dg1' } },
    before: (fake) => fake.setBehind(WEB2, 'drain'),
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'a cut by an address that is in doubt',
    change: { kind: 'terminate', ref: { pool: 'web', member: 'any:80' } },
    fake: { pools: { web: [{ name: 'any:80', address: '0.0.0.0' }] } },
    is: ['rejected', 'UNSUPPORTED', false],
  },
  {
    of: 'a removal of a node',
    change: { kind: 'remove', ref: { pool: '@nodes', member: '10.0.0.1' } },
    is: ['rejected', 'UNSUPPORTED', false],
  },
  {
    of: 'a removal that the device refuses',
    change: remove,
    fault: answer(/^DELETE .*members/, 400),
    is: ['rejected', 'REJECTED', false],
  },
  {
    of: 'a removal that the device was too busy for',
    change: remove,
    fault: answer(/^DELETE .*members/, 503),
    is: ['unknown', 'CONNECTION_LOST', true],
  },
  {
    of: 'an addition of a name that is there, at another address',
    change: { ...add, ref: WEB1, address: '10.0.0.7' },
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'an addition to a pool that is not there',
    change: { ...add, ref: { pool: '/Common/none', member: nine.member } },
    is: ['rejected', 'NOT_FOUND', false],
  },
]

describe.concurrent('a refusal, and whether the change can succeed later', () => {
  test.each(ROWS)('$of', async ({ change, is, fault, before, fake, options }) => {
    await using it = await rig(fake, options)
    await before?.(it.fake)
    if (fault) it.fake.fail(fault)
    const [result] = await it.lb.apply([change], ctx())
    const [status, code, retryable] = is
    expect(result).toMatchObject({ status, error: { code, retryable } })
  })
})

describe('a whole call that fails', () => {
  test('without an active unit can succeed after the failover', async () => {
    await using it = await rig()
    await it.fake.failover()
    const [result] = await it.lb.apply([hold], ctx())
    expect(result).toMatchObject({
      status: 'rejected',
      error: { code: 'CONFLICT', retryable: true },
    })
  })

  test('with a refused password can not', async () => {
    await using it = await rig({}, { password: 'wrong' })
    const [result] = await it.lb.apply([hold], ctx())
    const error = { code: 'UNAUTHENTICATED', retryable: false }
    expect(result).toMatchObject({ status: 'rejected', error })
  })

  test('with an untrusted certificate can not', async () => {
    await using it = await rig({ tls: true }, { tls: { fingerprint256: '00'.repeat(32) } })
    const [result] = await it.lb.apply([hold], ctx())
    const error = { code: 'UNREACHABLE', retryable: false }
    expect(result).toMatchObject({ status: 'rejected', error })
  })

  test('of a closed provider can not', async () => {
    await using it = await rig()
    it.fake.fail({ match: /failover-status/, how: 'silent' })
    const call = it.lb.apply([hold], ctx())
    const ended = expect(call).rejects.toMatchObject({ code: 'CONNECTION_LOST', retryable: false })
    await it.lb.close()
    await ended
    await expect(it.lb.apply([hold], ctx())).rejects.toMatchObject({ retryable: false })
  })
})

test.each([
  [409, 'The requested object already exists', 'exists'],
  [409, 'operation in progress, try again', 'later'],
  [423, 'locked', 'later'],
])('%d "%s" is %s', (status, message, kind) => {
  expect(classify(status, JSON.stringify({ code: status, message })).kind).toBe(kind)
})
