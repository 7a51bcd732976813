import { expect, test } from 'vitest'
import { ctx, rig } from './rig.js'

test('a look at everything lists a pool without members', async () => {
  await using at = await rig({ pools: { web: ['10.0.0.1:80'], '/Common/empty': [] } })
  const { pools } = await at.lb.observe('all', ctx())
  expect(pools).toMatchObject([
    { pool: '/Common/web', total: 1 },
    { pool: '/Common/empty', serving: 0, total: 0 },
  ])
})
