import { expect, test } from 'vitest'
import { drain } from 'drainable'
import { thrown, web1 } from '../set-up.js'
import { rig } from '../rig.js'

test.each([
  ['refuse', 'left serving (it then refuses work), keepReady is 1'],
  ['spill', 'left serving (its work then goes elsewhere), keepReady is 1'],
  ['all', 'left serving (it then uses every member, drained ones too), keepReady is 1'],
  ['unknown', 'left serving, keepReady is 1'],
] as const)('a refusal says what the pool does without a server: %s', async (whenNone, words) => {
  const { clock, lb } = rig({ pools: { web: ['web1'] } })
  const observe = lb.observe.bind(lb)
  lb.observe = async (refs, ctx) => {
    const { readings, pools } = await observe(refs, ctx)
    return { readings, pools: pools.map((pool) => ({ ...pool, whenNone })) }
  }
  const error = (await thrown(clock.runUntil(drain(lb, web1, { clock })))) as Error
  expect(error).toMatchObject({ code: 'POOL_AT_MINIMUM' })
  expect(error.message).toContain(words)
})
