import { expect, test } from 'vitest'
import { startDrain, type Reading, type Ticket } from 'drainable'
import { only, web1 } from '../set-up.js'
import { isSeal, recordChanges, rig, showAs, type Rig } from '../rig.js'

/** A ticket that takes three seconds to be kept. */
function slowly({ clock }: Rig): () => Promise<void> {
  return () => new Promise((resolve) => void clock.setTimeout(resolve, 3_000))
}

test('a maint that waits for its ticket is not sent once it would cut', async () => {
  const both = rig()
  const { clock, lb } = both
  let maint: 'gentle' | 'cuts' = 'gentle'
  showAs(lb, (reading: Reading) => (reading.present ? { ...reading, maint } : reading))
  const sent = recordChanges(lb, clock)
  lb.occupy(web1, 3)
  const onTicket = slowly(both)
  const run = startDrain(lb, web1, { clock, hold: 'maint', timeout: '1m', onTicket })
  await clock.advance(500)
  maint = 'cuts'
  await clock.advance(10_000)
  expect(sent.map(({ change }) => change)).toMatchObject([{ kind: 'hold', to: 'drain' }])
  expect(lb.load(web1)).toBe(3)
  await clock.runUntil(run.release())
})

test('a seal that waits for its ticket is not sent over new work', async () => {
  const { clock, lb } = rig({ capabilities: { maint: 'cuts' } })
  const sent = recordChanges(lb, clock)
  let end: (() => void) | undefined
  const onTicket = async ({ members }: Ticket): Promise<void> => {
    if (members[0]?.intended?.kind !== 'hold' || sent.length === 0) return
    end ??= lb.occupy(web1, 2)
    await new Promise<void>((resolve) => void clock.setTimeout(resolve, 1_500))
  }
  const run = startDrain(lb, web1, { clock, seal: true, timeout: '1m', onTicket })
  await clock.advance(10_000)
  expect([end === undefined, sent.filter(({ change }) => isSeal(change))]).toEqual([false, []])
  end?.()
  const report = await clock.runUntil(run.done)
  expect(only(report)).toMatchObject({ outcome: 'idle', sealed: true, terminated: 0 })
  await clock.runUntil(run.release())
})
