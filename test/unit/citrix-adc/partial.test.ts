import { describe, expect, test } from 'vitest'
import { change, rig, WEB1, type Rig } from './rig.js'
import { eventually } from '../../support/eventually.js'

const hold = { kind: 'hold', ref: WEB1, to: 'drain' } as const
const restore = { kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' } as const

/** Every reply is held back long enough for the role to change under a request that is on its way. */
const SLOW = { ha: true, latency: 40 } as const

/** Lets the other node take over while the first request like this one is under way. */
async function failoverDuring({ fake }: Rig, match: RegExp, work: () => Promise<unknown>) {
  const from = fake.requests.length
  const ended = work()
  await eventually(() =>
    expect(fake.requests.slice(from).some(({ line }) => match.test(line))).toBe(true),
  )
  await fake.failover()
  return ended
}

const actions = ({ fake }: Rig) =>
  fake.requests
    .filter(({ line }) => /action=(disable|enable)/.test(line))
    .map(({ line, node }) => [/action=(\w+)/.exec(line)?.[1], node])

describe('a change taken by a node that had just become the secondary', () => {
  test('is put back there, and refused', async () => {
    await using at = await rig(SLOW)
    const result = await failoverDuring(at, /action=disable/, () => change(at.adc, hold))
    expect(result).toMatchObject({
      status: 'rejected',
      error: { code: 'CONFLICT', retryable: true },
    })
    const [first] = actions(at)
    expect(actions(at)).toEqual([
      ['disable', first?.[1]],
      ['enable', first?.[1]],
    ])
    expect(at.fake.look(WEB1).enabled).toBe(true)
    await at.fake.failover()
    expect(at.fake.look(WEB1).enabled).toBe(true)
  })

  test('is made on the new primary by the next call', async () => {
    await using at = await rig(SLOW)
    await failoverDuring(at, /action=disable/, () => change(at.adc, hold))
    expect(await change(at.adc, hold)).toMatchObject({ status: 'applied' })
    expect(at.fake.look(WEB1).enabled).toBe(false)
  })

  test('is of unknown outcome if it can not be put back', async () => {
    await using at = await rig(SLOW)
    at.fake.fail({ match: /action=enable/, how: 'status', status: 599, errorcode: 257 })
    const result = await failoverDuring(at, /action=disable/, () => change(at.adc, hold))
    expect(result).toMatchObject({ status: 'unknown', error: { code: 'CONFLICT' } })
    expect(result).toHaveProperty('error.message', expect.stringContaining('could not be put back'))
  })

  test('is not put back if it is a restore, because a disable may cut', async () => {
    await using at = await rig(SLOW)
    await change(at.adc, hold)
    const result = await failoverDuring(at, /action=enable/, () => change(at.adc, restore))
    expect(result).toMatchObject({ status: 'unknown', error: { code: 'CONFLICT' } })
    expect(actions(at).map(([action]) => action)).toEqual(['disable', 'enable'])
  })

  test('with a lost answer is not believed for what that node shows', async () => {
    await using at = await rig(SLOW)
    at.fake.fail({ match: /action=disable/, how: 'reset', execute: true })
    const result = await failoverDuring(at, /action=disable/, () => change(at.adc, hold))
    expect(result).toMatchObject({ status: 'unknown', error: { code: 'CONNECTION_LOST' } })
    expect(at.fake.look(WEB1).enabled).toBe(true)
  })
})
