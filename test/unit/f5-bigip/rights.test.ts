import { plan, select } from 'drainable'
import type { FakeFailure } from 'drainable/testing/f5-bigip'
import { describe, expect, test } from 'vitest'
import { ctx, present, rig, WEB1, type Rig } from './rig.js'

const NODE = { pool: '@nodes', member: '/Common/10.0.0.1' }

/** The hints of a member after the drain has asked what the device is. */
async function hintsOf({ lb }: Rig, ref = WEB1): Promise<string> {
  await lb.describe(ctx())
  return (await present(lb, ref)).hints?.join('\n') ?? ''
}

describe('a role that is too low', () => {
  test.each([WEB1, NODE])('is named before anything is changed: $member', async (ref) => {
    await using it = await rig({ role: 'guest' })
    expect(await hintsOf(it, ref)).toContain(
      'role guest on Common, a change needs at least operator',
    )
  })

  test('is named with the role that an option needs', async () => {
    await using it = await rig({ role: 'operator' }, { save: true, persistence: 'forget' })
    const hints = await hintsOf(it)
    expect(hints).toContain("save, persistence: 'forget' need a Resource Administrator")
  })

  test('for a cut is in the plan', async () => {
    await using it = await rig({ role: 'operator' })
    expect(await hintsOf(it)).toBe('')
    const [node] = await select(it.lb, { address: '10.0.0.1' })
    expect(node).toHaveProperty(
      'hints',
      expect.arrayContaining([expect.stringContaining('to cut connections') as string]),
    )
  })

  test.each([
    ['operator', 'the role operator on all-partitions drains and opens; to cut connections'],
    ['guest', 'the role guest on Common, a change needs at least operator'],
  ] as const)('of a named member is in plan(): %s', async (role, words) => {
    await using it = await rig({ role })
    const { notes } = await plan(it.lb, WEB1, { timeout: '1m' })
    expect(notes).toContainEqual(expect.stringContaining(words))
  })

  test('is the one of the partition', async () => {
    await using it = await rig()
    const partitionAccess = [{ name: 'Tenant', role: 'operator' }]
    const body = { kind: 'tm:auth:user:userstate', name: 'admin', partitionAccess }
    it.fake.fail({ match: /auth\/user/, how: 'status', status: 200, body })
    expect(await hintsOf(it)).toContain('has no role on Common')
  })
})

test.each<[string, Omit<FakeFailure, 'match'>]>([
  ['refused', { how: 'status', status: 403, body: { code: 403, message: 'no right' } }],
  ['not there', { how: 'status', status: 404, body: { code: 404, message: 'no such user' } }],
  ['garbage', { how: 'garbage' }],
  ['a login page', { how: 'status', status: 200, body: '<html><title>Login</title></html>' }],
  ['elsewhere', { how: 'status', status: 302, body: '' }],
  ['cut', { how: 'reset' }],
  ['busy', { how: 'status', status: 503 }],
  ['of another shape', { how: 'status', status: 200, body: { partitionAccess: 'guest' } }],
  ['silent', { how: 'silent' }],
])('a role is unknown if the answer is %s, and nothing fails', async (_what, fault) => {
  await using it = await rig({ role: 'guest' })
  it.fake.fail({ match: /auth\/user/, ...fault })
  expect(await hintsOf(it)).toBe('')
})
