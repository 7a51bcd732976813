import { startDrain } from 'drainable'
import { describe, expect, test } from 'vitest'
import { present, read, rig, until, WEB1 } from './rig.js'

const FAST = { settle: '50ms', timeout: '50s' } as const
const PAIR = { pair: { autoSync: true } } as const
const NODE = { pool: '@nodes', member: '/Common/10.0.0.1' }

describe('a pair with two units active for one traffic group', () => {
  test.each([WEB1, NODE])('is unread, and named: $member', async (ref) => {
    await using it = await rig(PAIR)
    it.fake.splitBrain()
    const { scopes } = await present(it.lb, ref)
    expect(scopes.map(({ state }) => state)).toEqual(['unread', 'unread'])
    for (const { note } of scopes) {
      expect(note).toContain('are both active for /Common/traffic-group-1')
    }
  })

  test('keeps a drain from idle until one unit is standby', async () => {
    await using it = await rig(PAIR)
    const heal = it.fake.splitBrain()
    const run = startDrain(it.lb, WEB1, FAST)
    await until('both hold it', () => {
      return it.fake.units.every((unit) => it.fake.state(WEB1, unit) === 'drain')
    })
    await until('that is why', () => run.why().some(({ text }) => text.includes('both active')))
    await heal()
    const { outcome, members } = await run.done
    expect([outcome, members[0]?.verifiedIdle]).toEqual(['idle', true])
    await run.close()
  })
})

test('units that are active for their own groups are both read', async () => {
  await using it = await rig({ pair: { bothActive: true } })
  const { scopes } = await read(it.lb, WEB1)
  expect(scopes.map(({ state }) => state)).toEqual(['read', 'read'])
})
