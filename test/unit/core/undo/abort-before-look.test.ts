import { startDrain } from 'drainable'
import { fakeClock, fakeProvider } from 'drainable/testing'
import { expect, it } from 'vitest'

const web1 = { pool: 'web', member: 'web1' }

it('an abort between the hold and the next look reports the hold', async () => {
  const clock = fakeClock()
  const lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, clock })
  const abort = new AbortController()
  const [apply, observe] = [lb.apply.bind(lb), lb.observe.bind(lb)]
  let isHeld = false
  Object.assign(lb, {
    apply: async (...call: Parameters<typeof apply>) => {
      const results = await apply(...call)
      isHeld = true
      return results
    },
    observe: (...call: Parameters<typeof observe>) => {
      if (isHeld) abort.abort()
      return observe(...call)
    },
  })
  await using run = startDrain(lb, web1, { clock, timeout: '1m', signal: abort.signal })
  await clock.advance(5_000)
  const { outcome, members } = await run.done
  expect([outcome, members[0]?.held]).toEqual(['aborted', true])
  await lb.close()
})
