import { startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { ctx, present, rig, until, WEB1, type Rig } from './rig.js'

const NODE = { pool: '@nodes', member: '/Common/10.0.0.1' }
const NODE_STATS = '/mgmt/tm/ltm/node/~Common~10.0.0.1/stats'
const COUNTS = {
  'serverside.curConns': { value: 0 },
  'serverside.totConns': { value: 0 },
  totRequests: { value: 0 },
  'connq.depth': { value: 0 },
}
const MEMBER = {
  ...COUNTS,
  nodeName: { description: '/Common/10.0.0.1' },
  poolName: { description: '/Common/web' },
  port: { value: 80 },
}

/** Statistics that call a member or node by that word, whatever the configuration says. */
function say(it: Rig, match: RegExp, fields: object, word: string): () => Promise<void> {
  const entries = { ...fields, 'status.enabledState': { description: word } }
  const body = { entries: { [NODE_STATS]: { nestedStats: { entries } } } }
  return it.fake.fail({ match, how: 'status', status: 200, body })
}

describe('statistics that contradict the configuration', () => {
  test.each([
    ['a member', WEB1, /members\/stats/, MEMBER],
    ['a node', NODE, /ltm\/node\/.*\/stats/, COUNTS],
  ])(
    'a %s that is disabled and called enabled is not in force',
    async (_what, ref, match, fields) => {
      await using it = await rig()
      await it.lb.apply([{ kind: 'hold', ref, to: 'drain' }], ctx())
      const end = say(it, match, fields, 'enabled')
      const { own, scopes } = await present(it.lb, ref)
      expect(own).toBe('drain')
      expect(scopes).toMatchObject([{ state: 'read', active: 0, inForce: false }])
      expect(scopes[0]?.note).toContain('its statistics call it enabled')
      await end()
      expect((await present(it.lb, ref)).scopes).toMatchObject([{ inForce: true }])
    },
  )

  test('a drain of such a member ends once they agree', async () => {
    await using it = await rig()
    const end = say(it, /members\/stats/, MEMBER, 'enabled')
    const run = startDrain(it.lb, WEB1, { settle: '50ms', timeout: '50s' })
    await until('that is why', () => run.why().some(({ code }) => code === 'not-in-force'))
    await end()
    expect((await run.done).outcome).toBe('idle')
    await run.close()
  })

  test('a member that is enabled and called disabled does not serve', async () => {
    await using it = await rig()
    say(it, /members\/stats/, MEMBER, 'disabled')
    expect(await present(it.lb, WEB1)).toMatchObject({ own: 'ready', serves: false })
    const { pools } = await it.lb.observe([WEB1], ctx())
    expect(pools).toMatchObject([{ serving: 1, total: 2 }])
  })

  test('a release without them is believed by its configuration', async () => {
    await using it = await rig()
    await it.lb.apply([{ kind: 'hold', ref: WEB1, to: 'drain' }], ctx())
    say(it, /members\/stats/, MEMBER, 'some new word')
    expect((await present(it.lb, WEB1)).scopes).toMatchObject([{ inForce: true }])
  })
})
