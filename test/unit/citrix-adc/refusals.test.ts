import type { Change } from 'drainable/provider'
import type { CitrixAdcOptions } from 'drainable/citrix-adc'
import type { CitrixFake, FakeFailure, FakeOptions } from 'drainable/testing/citrix-adc'
import { describe, expect, test } from 'vitest'
import { classify, toError } from '../../../src/adapters/citrix-adc/codec/errors.js'
import { parseReply } from '../../../src/adapters/citrix-adc/codec/nitro.js'
import { change, context, rig, WEB1 } from './rig.js'

const hold = { kind: 'hold', ref: WEB1, to: 'drain' } as const
const restore = { kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' } as const
const terminate = { kind: 'terminate', ref: WEB1 } as const

const answer = (errorcode: number, status = 599): FakeFailure => ({
  match: /action=disable/,
  how: 'status',
  status,
  errorcode,
})

interface Row {
  readonly of: string
  readonly change: Change
  readonly is: readonly [status: 'rejected' | 'unknown', code: string, retryable: boolean]
  readonly fault?: FakeFailure
  readonly before?: (fake: CitrixFake) => unknown
  readonly fake?: FakeOptions
  readonly options?: Partial<CitrixAdcOptions>
}

/** `retryable`: the same change can be carried out later without a new decision. */
const ROWS: readonly Row[] = [
  {
    of: 'a member that is not there',
    change: { ...hold, ref: { pool: 'web', member: '10.0.0.9:80' } },
    is: ['rejected', 'NOT_FOUND', false],
  },
  {
    of: 'a member that is another one now',
    change: { ...hold, identity: 'another' },
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'a restore of a state that another client has changed',
    change: restore,
    before: (fake) => fake.setBehind(WEB1, 'maint'),
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'a cut of a member that is in service',
    change: terminate,
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'a cut where connections outlive a disable',
    change: terminate,
    fake: { pools: { web: { members: [WEB1.member], downstateflush: 'DISABLED' } } },
    before: async (fake) => {
      await fake.occupy(WEB1)
      await fake.setBehind(WEB1, 'drain')
    },
    is: ['rejected', 'UNSUPPORTED', false],
  },
  {
    of: 'a member of a desired-state group',
    change: hold,
    fake: { pools: { web: { members: [WEB1.member], autoscale: 'API' } } },
    is: ['rejected', 'UNSUPPORTED', false],
  },
  {
    of: 'a member of a desired-state group that is tried all the same',
    change: hold,
    fake: { pools: { web: { members: [WEB1.member], autoscale: 'API' } } },
    options: { desiredState: 'try' },
    is: ['rejected', 'REJECTED', false],
  },
  {
    of: 'a hold without rights',
    change: hold,
    fault: answer(2138, 403),
    is: ['rejected', 'FORBIDDEN', false],
  },
  {
    of: 'an object that is gone',
    change: hold,
    fault: answer(258, 404),
    is: ['rejected', 'NOT_FOUND', false],
  },
  {
    of: 'an operation that is not permitted',
    change: hold,
    fault: answer(257),
    is: ['rejected', 'REJECTED', false],
  },
  {
    of: 'a device that is busy',
    change: hold,
    fault: answer(272),
    is: ['rejected', 'UNREACHABLE', true],
  },
  {
    of: 'a node that is the secondary',
    change: hold,
    fault: answer(368),
    is: ['rejected', 'CONFLICT', true],
  },
  {
    of: 'a node of a cluster',
    change: hold,
    fault: answer(1203),
    is: ['rejected', 'REJECTED', false],
  },
  {
    of: 'no word of the packet engine',
    change: hold,
    fault: answer(1198),
    is: ['unknown', 'CALL_TIMEOUT', true],
  },
  {
    of: 'a hold whose answer is lost',
    change: hold,
    fault: { match: /action=disable/, how: 'reset' },
    is: ['unknown', 'CONNECTION_LOST', true],
  },
  {
    of: 'a page of a proxy',
    change: hold,
    fault: { match: /action=disable/, how: 'garbage' },
    is: ['unknown', 'MALFORMED_REPLY', true],
  },
  {
    of: 'a removal of a member in service',
    change: { kind: 'remove', ref: WEB1 },
    is: ['rejected', 'CONFLICT', false],
  },
  {
    of: 'an addition of a name that is there, at another address',
    change: { kind: 'add', ref: WEB1, address: '10.9.9.9', port: 80 },
    is: ['rejected', 'CONFLICT', false],
  },
]

describe.concurrent('a refusal, and whether the change can succeed later', () => {
  test.each(ROWS)('$of', async ({ change: one, is, fault, before, fake, options }) => {
    await using at = await rig(fake, options)
    await before?.(at.fake)
    if (fault) at.fake.fail(fault)
    const [status, code, retryable] = is
    expect(await change(at.adc, one)).toMatchObject({ status, error: { code, retryable } })
  })
})

test('a closed provider refuses once and for all', async () => {
  await using at = await rig()
  await at.adc.close()
  await expect(at.adc.apply([hold], context())).rejects.toMatchObject({ retryable: false })
})

test.each([
  [423, '<p>locked</p>', 'busy', true],
  [429, '<p>too many</p>', 'busy', true],
  [503, '<p>later</p>', 'busy', true],
  [423, '{"errorcode": 9999, "message": "locked"}', 'busy', true],
  [409, '{"errorcode": 9999, "message": "no"}', 'refused', false],
])('%d %s is %s', (status, text, kind, retryable) => {
  const reply = parseReply(status, text)
  expect(classify(reply)).toBe(kind)
  expect(toError('disable', reply).retryable).toBe(retryable)
})
