import { DrainableError, startDrain } from 'drainable'
import { expect, test } from 'vitest'
import { isHold, rig } from '../rig.js'
import { only, web1 } from '../set-up.js'

test('a later drain is not refused for what an earlier one was refused', async () => {
  const { clock, lb } = rig()
  const [describe, apply] = [lb.describe.bind(lb), lb.apply.bind(lb)]
  lb.describe = async (ctx) => {
    const info = await describe(ctx)
    return { ...info, capabilities: { ...info.capabilities, lateBound: 30_000 } }
  }
  let holds = 0
  lb.apply = (changes, ctx) => {
    if (!changes.some(isHold) || holds >= 2) return apply(changes, ctx)
    holds += 1
    // The answer that is lost keeps what is known of the member for a while.
    if (holds === 1) return Promise.reject(new DrainableError('CONNECTION_LOST', 'no answer'))
    const error = new DrainableError('FORBIDDEN', 'no rights', { retryable: false })
    return Promise.resolve(changes.map(({ ref }) => ({ ref, status: 'rejected' as const, error })))
  }
  const first = startDrain(lb, web1, { clock })
  expect(only(await clock.runUntil(first.done)).error?.code).toBe('FORBIDDEN')
  await first.release()
  const second = startDrain(lb, web1, { clock, timeout: '2m' })
  expect((await clock.runUntil(second.done, 120_000)).outcome).toBe('idle')
  await second.release()
})
