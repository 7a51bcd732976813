import { plan, select } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import type { FakeFailure } from 'drainable/testing/citrix-adc'
import { describe, expect, test } from 'vitest'
import { context, rig, WEB1, type Rig } from './rig.js'

const MACHINE = { address: '10.0.0.1' }
const POOLS = { web: ['10.0.0.1:80', '10.0.0.2:80'], api: ['10.0.0.1:8080'] }
const VSERVERS = { vs: { members: ['svc1'], groups: ['web'] } }

async function hintsOf({ adc }: Rig): Promise<readonly string[]> {
  return (await select(adc, MACHINE)).map((one) =>
    one.present ? (one.hints ?? []).join('\n') : '',
  )
}

describe('a plan', { concurrent: true }, () => {
  test('names every virtual server and the time, and changes nothing', async () => {
    await using at = await rig({ pools: POOLS, vservers: VSERVERS })
    const [web, api] = await hintsOf(at)
    expect(web).toContain('one of 2 that are changed one by one')
    expect(web).toContain('virtual servers in front: vs\n')
    expect(api).toContain('virtual servers in front: none')
    expect(web).toMatch(/about \d+ s to be proved idle, and up to \d+ s .*2 changes in 1 list,/)
    expect(at.fake.requests.some(({ line }) => line.includes('action='))).toBe(false)
  })

  test('names what is in front of hundreds of groups in whole hints', async () => {
    const names = Array.from({ length: 300 }, (_, i) => `virtual-server-${i}`)
    const vservers = Object.fromEntries(
      names.map((name) => [name, { members: [`svc-${name}`], groups: ['web'] }]),
    )
    await using at = await rig({ pools: POOLS, vservers })
    const [web] = await select(at.adc, MACHINE)
    const hints = web?.present === true ? (web.hints ?? []) : []
    const told = hints.filter((hint) => hint.startsWith('virtual servers in front')).join()
    for (const name of names) expect(told).toMatch(new RegExp(`${name}\\b`))
    expect(Math.max(...hints.map(({ length }) => length))).toBeLessThan(1_000)
  })
})

describe('a read-only user', { concurrent: true }, () => {
  const users = { eve: { password: 'secret', rights: 'read-only' } } as const
  const asEve = async (fault?: FakeFailure) => {
    const at = await rig({ pools: POOLS, users }, { username: 'eve' })
    if (fault !== undefined) at.fake.fail(fault)
    return at
  }

  test('is named before anything is changed', async () => {
    await using at = await asEve()
    const { clock, signal } = context()
    // A plan waits three seconds for an answer, and this machine may be slow.
    const slow = {
      ...clock,
      setTimeout: (fn: () => void, ms: number) => clock.setTimeout(fn, 20 * ms),
    }
    await at.adc.describe({ clock: slow, signal })
    const { readings } = await at.adc.observe([WEB1], context())
    expect(readings[0]).toHaveProperty('hints', [
      expect.stringContaining("the user eve has the command policy 'read-only' alone") as string,
    ])
  })

  test.each<[string, FakeFailure]>([
    ['refused', { match: /system(user|group)_/, how: 'status', status: 403, errorcode: 2138 }],
    ['not there', { match: /system(user|group)_/, how: 'status', status: 404, errorcode: 258 }],
    ['unknown', { match: /system(user|group)_/, how: 'status', status: 400, errorcode: 1232 }],
    ['garbage', { match: /system(user|group)_/, how: 'garbage' }],
    ['cut', { match: /system(user|group)_/, how: 'reset' }],
    [
      'of another shape',
      {
        match: /system(user|group)_/,
        how: 'status',
        status: 200,
        body: { errorcode: 0, systemuser_systemcmdpolicy_binding: 'read-only' },
      },
    ],
    ['silent', { match: /system(user|group)_/, how: 'silent' }],
  ])('is not recognised when the answer is %s, and nothing fails', async (_what, fault) => {
    await using at = await asEve(fault)
    expect((await at.adc.describe(context())).product).toBe('citrix-adc')
    const { readings } = await at.adc.observe([WEB1], context())
    expect(readings[0]).not.toHaveProperty('hints')
  })
})

test.each([
  ['operator', 'it can enable and disable, but to add and to remove members needs more'],
  ['read-only', 'it can look but change nothing'],
])('plan() names the rights of a user with the policy %s', async (policyname, words) => {
  await using at = await rig({ pools: POOLS })
  const row = { username: 'admin', policyname, priority: '100' }
  const body = { errorcode: 0, systemuser_systemcmdpolicy_binding: [row] }
  at.fake.fail({ match: /systemuser_systemcmd/, how: 'status', status: 200, body })
  const { notes } = await plan(at.adc, WEB1, { timeout: '1m' })
  expect(notes).toContainEqual(expect.stringContaining(words))
})

test('a policy of another name is not judged', async () => {
  await using at = await rig({ pools: POOLS })
  const row = { username: 'admin', policyname: 'drainable', priority: '100' }
  const body = { errorcode: 0, systemuser_systemcmdpolicy_binding: [row] }
  at.fake.fail({ match: /systemuser_systemcmd/, how: 'status', status: 200, body })
  const url = at.fake.url
  await using adc = citrixAdc({ url, username: 'admin', password: 'secret', save: true })
  await adc.describe(context())
  expect((await adc.observe([WEB1], context())).readings[0]).not.toHaveProperty('hints')
})
