import { expect, test } from 'vitest'
import {
  DrainableError,
  resumeDrain,
  startDrain,
  type DrainableProvider,
  type Ticket,
} from 'drainable'
import { json, rig } from '../rig.js'
import { web1 } from '../set-up.js'

/** No loop without a pause may go on for ever in a test: from that many calls on it gives no answer. */
const MOST_CALLS = 1_000

test('a drain resumed after its deadline asks a lost balancer with pauses', async () => {
  const { clock, lb } = rig()
  lb.occupy(web1)
  const kept: Ticket[] = []
  const onTicket = (ticket: Ticket): void => void kept.push(json(ticket))
  const first = startDrain(lb, web1, { clock, timeout: '30s', onTicket })
  await clock.advance(1_000)
  await first.release()
  await clock.advance(60_000)

  let asked = 0
  const lost = (): Promise<never> => {
    asked += 1
    if (asked > MOST_CALLS) return new Promise(() => undefined)
    return Promise.reject(new DrainableError('UNREACHABLE', 'nobody there', { provider: lb.name }))
  }
  const { specVersion, name, instance } = lb
  const close = async (): Promise<void> => undefined
  const another: DrainableProvider = {
    ...{ specVersion, name, instance, close },
    ...{ describe: lost, observe: lost, apply: lost },
    [Symbol.asyncDispose]: close,
  }
  const run = resumeDrain(another, kept.at(-1)!, { clock })
  expect((await clock.runUntil(run.done)).outcome).toBe('unreachable')
  expect(asked).toBeLessThan(10)
})
