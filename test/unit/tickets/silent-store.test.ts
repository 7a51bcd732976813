/** A drain whose ticket store never answers: the balancer is not blamed for it. */
import { expect, test } from 'vitest'
import { startDrain, type TicketStore } from 'drainable'
import { memoryStore } from '../core/rig.js'
import { only, setUp, web1 } from '../core/set-up.js'

test('a change that was not sent names the store as the reason', async () => {
  const { clock, lb } = setUp()
  const kept = memoryStore()
  const tickets: TicketStore = { ...kept, set: () => new Promise<never>(() => undefined) }
  const faults: string[] = []
  const run = startDrain(lb, web1, {
    clock,
    tickets,
    timeout: '10s',
    onEvent: (event) => {
      if (event.type === 'fault') faults.push(event.error.message)
    },
  })
  const report = await clock.runUntil(run.done)
  const words = 'was not sent: its ticket was not saved before the deadline'
  expect(only(report)).toMatchObject({ outcome: 'timeout', held: false })
  expect(only(report).error).toMatchObject({ code: 'TICKET_INVALID' })
  expect(only(report).error?.message).toContain(words)
  expect(faults.join()).not.toContain('the balancer gave no answer')
  expect(lb.state(web1)).toBe('ready')
})
