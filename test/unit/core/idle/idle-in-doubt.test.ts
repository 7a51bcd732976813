import { expect, test } from 'vitest'
import { startDrain, type Drain, type DrainReport } from 'drainable'
import { web1, web2 } from '../set-up.js'
import { rig, type Rig } from '../rig.js'

/** Two drained members, of which web1 is idle long before web2; with when the whole of it ended. */
async function both({ clock, lb }: Rig, meanwhile?: () => void): Promise<[DrainReport, number]> {
  const end = lb.occupy(web2)
  const run: Drain = startDrain(lb, [web1, web2], { clock, timeout: '10m', settle: '100ms' })
  await clock.advance(5_000)
  end()
  await clock.advance(350)
  meanwhile?.()
  const report = await clock.runUntil(run.done)
  const at = clock.now()
  await run.release()
  return [report, at]
}

test('a member that can not be read at the end is not called idle', async () => {
  const { clock, lb } = rig()
  lb.occupy(web2)
  const run = startDrain(lb, [web1, web2], { clock, timeout: '1m', settle: '100ms' })
  await clock.advance(5_000)
  expect(run.report().members.map(({ phase }) => phase)).toEqual(['idle', 'draining'])
  lb.disconnect()
  const { members } = await clock.runUntil(run.done)
  expect(members.map(({ outcome }) => outcome)).toEqual(['unreachable', 'unreachable'])
  expect(members.map(({ verifiedIdle }) => verifiedIdle)).toEqual([false, false])
  await run.release()
})

test('a member that is read again before the end is called idle', async () => {
  const { clock, lb } = rig()
  const end = lb.occupy(web2)
  const run = startDrain(lb, [web1, web2], { clock, timeout: '1m', settle: '100ms' })
  await clock.advance(5_000)
  lb.disconnect()
  await clock.advance(5_000)
  lb.connect()
  end()
  const { members } = await clock.runUntil(run.done)
  expect(members.map(({ outcome }) => outcome)).toEqual(['idle', 'idle'])
  await run.release()
})

test('a member found replaced just before the end is not called idle', async () => {
  const capabilities = { freshness: 300, minInterval: 50 }
  const [, undisturbed] = await both(rig({ capabilities }))
  const one = rig({ capabilities })
  const [{ members }, at] = await both(one, () => one.lb.setIdentity(web1, 'another'))
  expect(members.map(({ outcome }) => outcome)).toEqual(['gone', 'idle'])
  expect(at).toBeGreaterThan(undisturbed)
})

test('work is told while the removal of an idle member has no answer', async () => {
  const { clock, lb } = rig()
  const apply = lb.apply.bind(lb)
  lb.apply = (changes, ctx) =>
    changes.some(({ kind }) => kind === 'remove')
      ? new Promise(() => undefined)
      : apply(changes, ctx)
  const lost: number[] = []
  const run = startDrain(lb, web1, { clock, until: 'removed' })
  run.on('idle-lost', () => lost.push(clock.now()))
  await clock.advance(3_000)
  expect(run.report().members[0]?.phase).toBe('idle')
  lb.occupy(web1)
  const from = clock.now()
  await clock.advance(1_000)
  expect(lost.map((at) => at - from < 200)).toEqual([true])
  await clock.runUntil(run.release())
})
