import fc from 'fast-check'
import { formatPlan, planChanges } from 'drainable/endpoints'
import { isDrainableError } from 'drainable'
import { describe, expect, test } from 'vitest'
import { a, plan, reading, snapshotOf, wish } from './plan-support.js'

function refused(desired: unknown, snapshot: unknown, options: unknown, message: string): void {
  expect(() => planChanges(desired as never, snapshot as never, options as never)).toThrow(
    expect.objectContaining({
      code: 'INVALID_OPTIONS',
      message: expect.stringContaining(message) as string,
    }),
  )
}

const ours = { pools: ['web'], owns: () => true }
const base = wish('10.0.0.1', 'serve')

describe('desired', () => {
  test.each<[unknown, string]>([
    ['web', 'desired is "web", expected a list of desired members'],
    [[null], 'desired[0] is null, expected a desired member'],
    [[{}], `desired[0].pool is missing, expected a pool's name`],
    [[{ pool: 'web' }], `desired[0].state is missing, expected 'serve', 'drain' or 'absent'`],
    [
      [{ pool: 'web', state: 'serve' }],
      'desired[0].address is missing, expected an address, or a name',
    ],
    [[{ ...base, address: '' }], 'desired[0].address is "", expected an address'],
    [[{ ...base, address: 1n }], 'desired[0].address is 1n, expected an address'],
    [[{ ...base, member: '' }], `desired[0].member is "", expected a member's name`],
    [[{ ...base, port: '80' }], 'desired[0].port is "80", expected a port from 1 to 65535'],
    [
      [base, { ...base, port: 99_999 }],
      'desired[1].port is 99999, expected a port from 1 to 65535',
    ],
    [[{ ...base, port: 80n }], 'desired[0].port is 80n, expected a port from 1 to 65535'],
    [[{ ...base, port: Number.NaN }], 'desired[0].port is NaN'],
    [[{ ...base, port: 0 }], 'desired[0].port is 0'],
    [[{ ...base, port: 80.5 }], 'desired[0].port is 80.5'],
    [
      [{ ...base, weight: Number.NaN }],
      'desired[0].weight is NaN, expected a finite number from 0',
    ],
    [[{ ...base, weight: Infinity }], 'desired[0].weight is Infinity'],
    [[{ ...base, weight: -1 }], 'desired[0].weight is -1'],
    [[{ ...base, weight: 1n }], 'desired[0].weight is 1n'],
    [[{ ...base, serving: 'no' }], 'desired[0].serving is "no", expected true or false'],
    [[{ ...base, reason: {} }], 'desired[0].reason is an object, expected a text'],
  ])('%#', (desired, message) => refused(desired, snapshotOf(a), ours, message))

  test('a pool that pools does not name is refused, naming both', () => {
    const elsewhere = { ...base, pool: 'api' }
    refused([base, elsewhere], snapshotOf(a), ours, 'desired[1].pool is "api", expected one of')
    refused([elsewhere], snapshotOf(a), { ...ours, pools: [] }, 'option pools, which is empty')
  })
})

describe('options', () => {
  test.each<[unknown, string]>([
    [undefined, 'the options are missing, expected an object'],
    [{}, 'pools is missing, expected the names of the pools that desired speaks for'],
    [{ owns: () => true }, 'pools is missing'],
    [{ pools: 'web', owns: () => true }, 'pools is "web"'],
    [{ pools: [1], owns: () => true }, 'pools[0] is 1, expected a text'],
    [{ pools: ['web'] }, 'owns is missing, expected a function that says which members may be'],
    [{ ...ours, owns: 'ctl-' }, 'owns is "ctl-", expected a function'],
    [{ ...ours, idle: true }, 'idle is true, expected a function'],
    [{ ...ours, keepReady: 1.5 }, 'keepReady is 1.5, expected a whole number from 0'],
    [{ ...ours, keepReady: -1 }, 'keepReady is -1'],
    [{ ...ours, gone: 'remove' }, `gone is "remove", expected 'maint' or 'drain'`],
    [{ ...ours, dryRun: true }, `unknown option 'dryRun'`],
    [{ ...ours, capabilities: [] }, 'capabilities is a list'],
    [{ ...ours, capabilities: {} }, 'capabilities.ladder is missing'],
    [{ ...ours, capabilities: { ladder: [], maint: 'soft' } }, 'capabilities.maint is "soft"'],
  ])('%#', (options, message) => refused([], snapshotOf(a), options, message))

  test('an async owns or idle is refused, since it would claim every member', () => {
    const later = { owns: () => Promise.resolve(false) }
    refused([base], snapshotOf(a), { ...ours, ...later }, 'owns(web/a) is an object, expected true')
    const held = snapshotOf(a, reading('b', '10.0.0.2', { own: 'maint' }))
    const idle = { idle: () => Promise.resolve(false) }
    refused([base], held, { ...ours, ...idle }, 'idle(web/b) is an object, expected true or false')
  })
})

describe('snapshot', () => {
  const bad = (more: object): unknown => ({ readings: [{ ...a, ...more }], pools: [] })

  test.each<[unknown, string]>([
    [undefined, 'snapshot is missing, expected a snapshot with readings and pools'],
    [{ readings: [] }, 'snapshot.pools is missing, expected a list of pools'],
    [{ pools: [] }, 'snapshot.readings is missing, expected a list of readings'],
    [{ readings: [null], pools: [] }, 'snapshot.readings[0] is null, expected a reading'],
    [{ readings: [], pools: [null] }, 'snapshot.pools[0] is null, expected a pool'],
    [{ readings: [], pools: [{}] }, 'snapshot.pools[0].pool is missing, expected a text'],
    [bad({ ref: undefined }), 'snapshot.readings[0].ref is missing, expected the names'],
    [bad({ ref: { pool: 'web' } }), 'snapshot.readings[0].ref.member is missing, expected a text'],
    [bad({ present: 'yes' }), 'snapshot.readings[0].present is "yes", expected true or false'],
    [bad({ identity: 7 }), 'snapshot.readings[0].identity is 7, expected a text'],
    [bad({ own: undefined }), `snapshot.readings[0].own is missing, expected 'ready', 'drain',`],
    [bad({ own: 'off' }), `snapshot.readings[0].own is "off", expected 'ready', 'drain',`],
    [bad({ serves: 1 }), 'snapshot.readings[0].serves is 1, expected true or false'],
    [bad({ health: 'fine' }), `snapshot.readings[0].health is "fine", expected 'up', 'down',`],
    [bad({ address: 10 }), 'snapshot.readings[0].address is 10, expected a text'],
    [bad({ port: 99_999 }), 'snapshot.readings[0].port is 99999, expected a port'],
    [bad({ weight: Number.NaN }), 'snapshot.readings[0].weight is NaN, expected a finite number'],
    [bad({ maint: 'soft' }), 'snapshot.readings[0].maint is "soft"'],
    [bad({ inherited: 'off' }), 'snapshot.readings[0].inherited is "off"'],
    [bad({ scopes: undefined }), 'snapshot.readings[0].scopes is missing, expected a list'],
    [bad({ scopes: [null] }), 'snapshot.readings[0].scopes[0] is null, expected a process'],
    [
      bad({ scopes: [{ state: 'read', active: 1n, queued: 0 }] }),
      'scopes[0].active is 1n, expected',
    ],
    [bad({ scopes: [{ state: 'on' }] }), `scopes[0].state is "on", expected 'read', 'unread' or`],
  ])('%#', (snapshot, message) => refused([base], snapshot, ours, message))

  test('a snapshot with any one field wrong throws only INVALID_OPTIONS', () => {
    const field = fc.constantFrom(...Object.keys(a), 'weight', 'inherited', 'maint', 'sealed')
    const value = fc.anything({ withBigInt: true, withNullPrototype: true, withSparseArray: true })
    fc.assert(
      fc.property(field, value, (key, odd) => {
        try {
          const found = plan([], bad({ own: 'maint', [key]: odd }) as never, { allowEmpty: true })
          formatPlan(found)
        } catch (error) {
          expect(isDrainableError(error, 'INVALID_OPTIONS')).toBe(true)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})
