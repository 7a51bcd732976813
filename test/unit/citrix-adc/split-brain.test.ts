import { startDrain } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import { describe, expect, test } from 'vitest'
import { context, rig, WEB1, WEB2 } from './rig.js'
import { eventually } from '../../support/eventually.js'

const NSIPS = ['192.0.2.240', '192.0.2.241'] as const
const PAIR = { ha: true, tls: false } as const

describe('a pair with two primary nodes', { concurrent: true }, () => {
  test('has an unread node, which is named', async () => {
    await using at = await rig(PAIR)
    at.fake.splitBrain()
    const { readings } = await at.adc.observe([WEB1, WEB2], context())
    for (const { scopes } of readings) {
      expect(scopes).toMatchObject([
        { scope: NSIPS[0], state: 'read' },
        { scope: NSIPS[1], state: 'unread' },
      ])
      expect(scopes[1]?.note).toContain(
        `${NSIPS[0]} and ${NSIPS[1]} both say that they are primary`,
      )
    }
  })

  test('keeps a drain from idle until one of them is secondary', async () => {
    await using at = await rig(PAIR)
    const heal = at.fake.splitBrain()
    const run = startDrain(at.adc, WEB1, { settle: '50ms', timeout: '50s' })
    await eventually(() => expect(at.fake.look(WEB1).svrstate).toBe('OUT OF SERVICE'))
    await eventually(() => {
      const told = run.why().filter(({ text }) => text.includes('both say that they are primary'))
      expect(told.map(({ code }) => code)).toContain('unreadable')
    })
    await heal()
    const { outcome, members } = await run.done
    expect([outcome, members[0]?.verifiedIdle]).toEqual(['idle', true])
    await run.close()
  })

  test('is noticed in mid-drain as soon as a member is out of service', async () => {
    await using at = await rig(PAIR)
    const end = await at.fake.occupy(WEB1)
    const run = startDrain(at.adc, WEB1, { settle: '50ms', timeout: '50s' })
    await eventually(() => expect(at.fake.look(WEB1).svrstate).toBe('GOING OUT OF SERVICE'))
    const heal = at.fake.splitBrain()
    await end()
    await eventually(() => {
      expect(run.why().some(({ text }) => text.includes('both say'))).toBe(true)
    })
    await heal()
    expect((await run.done).outcome).toBe('idle')
    await run.close()
  })
})

describe('a node of a pair that does not answer', { concurrent: true }, () => {
  test('and that the primary calls secondary is no scope', async () => {
    await using at = await rig(PAIR)
    at.fake.fail({ how: 'reset', node: NSIPS[1] })
    const { readings } = await at.adc.observe([WEB1], context())
    expect(readings[0]?.scopes).toHaveLength(1)
  })

  test('and that the primary can not hear is an unread scope', async () => {
    await using at = await rig(PAIR)
    at.fake.splitBrain()
    const lift = at.fake.fail({ how: 'reset', node: NSIPS[1] })
    const ctx = context()
    const { readings } = await at.adc.observe([WEB1], ctx)
    const [, second] = readings[0]?.scopes ?? []
    expect(second).toMatchObject({ scope: NSIPS[1], state: 'unread' })
    expect(second?.note).toContain("calls it 'UNKNOWN' and not secondary")
    await lift()
  })

  test('is asked less and less often', async () => {
    await using at = await rig(PAIR, { freshness: 0 })
    at.fake.splitBrain()
    at.fake.fail({ how: 'reset', node: NSIPS[1] })
    const real = context()
    const ctx = { ...real, clock: { ...real.clock, now: () => 0 } }
    for (let i = 0; i < 10; i += 1) await at.adc.observe([WEB1], ctx)
    expect(at.fake.requests.filter(({ node }) => node === NSIPS[1])).toHaveLength(1)
  })
})

test.each([
  ['where it tells its address', /nothing/],
  ['where its address may not be read', /config\/hanode/],
])('two addresses of one node count once, %s', async (_where, match) => {
  await using at = await rig(PAIR)
  at.fake.fail({ match, how: 'status', status: 403, errorcode: 2138 })
  const url = [at.fake.urls[0]!, at.fake.snip]
  await using adc = citrixAdc({ url, username: 'admin', password: 'secret', freshness: '200ms' })
  const { readings } = await adc.observe([WEB1], context())
  expect(readings[0]?.scopes).toHaveLength(1)
})
