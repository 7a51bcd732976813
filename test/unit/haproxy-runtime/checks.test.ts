import { expect, test } from 'vitest'
import { change, context, rig, WEB1 } from './rig.js'

test('a check of a hold that could not be made is made again', async () => {
  const web = [{ name: 'web1', check: true }, 'web2']
  const api = [{ name: 'api1', track: 'web/web1' }]
  await using r = await rig({ pools: { web, api } }, { keepFollowers: 1 })
  const hold = { kind: 'hold', ref: WEB1, to: 'drain' } as const
  const lift = r.fake.fail({ match: /show servers state api/, how: 'reset' })
  for (let tries = 0; tries < 2; tries++) {
    const held = await change(r.lb, hold)
    expect(['rejected', 'unknown']).toContain(held.status)
  }
  await lift()
  expect(await change(r.lb, hold)).toMatchObject({ error: { code: 'POOL_AT_MINIMUM' } })
  const { readings } = await r.lb.observe([WEB1], context())
  expect(readings[0]).toMatchObject({ own: 'ready' })
  expect(r.fake.requests.some(({ line }) => line.includes('set server'))).toBe(false)
})
