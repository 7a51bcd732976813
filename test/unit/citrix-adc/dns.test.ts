import { drain } from 'drainable'
import type { Change } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { change, context, rig } from './rig.js'

/** One server by its name, for which DNS has two addresses; another one has one. */
const POOLS = {
  app: {
    autoscale: 'DNS' as const,
    members: [
      { name: 'app.example.net:80', address: '10.0.0.1' },
      { name: 'app.example.net:80', address: '10.0.0.2' },
      { name: 'solo.example.net:80', address: '10.0.0.3' },
    ],
  },
}
const ONE = { pool: 'app', member: '10.0.0.1:80' }
const BOTH = { pool: 'app', member: 'app.example.net:80' }

describe('members that DNS makes of one server', { concurrent: true }, () => {
  test('are told apart by their addresses', async () => {
    await using at = await rig({ pools: POOLS })
    const { fake, adc } = at
    await fake.occupy({ pool: 'app', member: '10.0.0.2:80' })
    const { readings } = await adc.observe('all', context())
    const told = readings.map(({ ref, scopes }) => [ref.member, scopes[0]?.active])
    expect(told).toEqual([
      ['10.0.0.1:80', 0],
      ['10.0.0.2:80', 1],
      ['solo.example.net:80', 0],
    ])
    const again = await adc.observe([ONE, BOTH], context())
    expect(again.readings.map(({ present }) => present)).toEqual([true, false])
  })

  test('are never changed, because an action would hit all of them', async () => {
    await using at = await rig({ pools: POOLS }, { desiredState: 'try' })
    const { fake, adc } = at
    for (const ref of [ONE, BOTH]) {
      const hold: Change = { kind: 'hold', ref, to: 'drain' }
      expect(await change(adc, hold)).toMatchObject({ status: 'rejected' })
    }
    await expect(drain(adc, ONE, { timeout: '50s' })).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      message: expect.stringContaining('an action would hit all of them') as string,
    })
    expect(fake.requests.filter(({ line }) => line.includes('action='))).toEqual([])
  })
})
