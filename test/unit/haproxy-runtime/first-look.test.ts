import { expect, test } from 'vitest'
import { context, rig, WEB1 } from './rig.js'

// After a reload between the first look and the first change, only that look has seen the old process.
test('without a master, a process of the first look is unread after a reload', async () => {
  await using it = await rig()
  const end = await it.fake.occupy(WEB1)
  await it.lb.observe([WEB1], context())
  await it.fake.reload()
  await it.lb.observe([WEB1], context()) // only says what a reload forgot
  const { readings } = await it.lb.observe([WEB1], context())
  expect(readings[0]!.scopes).toContainEqual(
    expect.objectContaining({ state: 'unread', old: true }),
  )
  await end()
})

// It is reached at the port that its clients asked for.
test('a server without a port has none', async () => {
  await using r = await rig({ pools: { web: [{ name: 'web1', address: '192.0.2.7', port: 0 }] } })
  const { readings } = await r.lb.observe([WEB1], context())
  expect(readings[0]).toMatchObject({ address: '192.0.2.7' })
  expect(readings[0]).not.toHaveProperty('port')
})
