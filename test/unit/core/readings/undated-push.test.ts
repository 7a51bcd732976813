import { describe, expect, it } from 'vitest'
import { startDrain, type Snapshot } from 'drainable'
import { rig } from '../rig.js'
import { recorder, web1 } from '../set-up.js'
import { flush } from '../settled.js'

describe('a pushed snapshot without a date', () => {
  it.each([
    ['with no process read', { state: 'unread' }],
    ['with a moment that is none', { sampledAt: NaN }],
  ] as const)('from before the hold, %s, is not an overrule', async (_, undated) => {
    const { clock, lb } = rig()
    const before = await lb.observe([web1], { clock, signal: new AbortController().signal })
    const stale: Snapshot = {
      ...before,
      readings: before.readings.map((reading) => ({
        ...reading,
        scopes: reading.scopes.map((scope) => ({ ...scope, ...undated })),
      })),
    }
    let push: (snapshot: Snapshot) => void = () => undefined
    lb.watch = async function* () {
      yield await new Promise<Snapshot>((resolve) => (push = resolve))
    }
    const { onEvent, types } = recorder()
    lb.occupy(web1)
    const handle = startDrain(lb, web1, { clock, onEvent, timeout: '10s' })
    await flush()
    await clock.advance(300)
    expect(lb.state(web1)).toBe('drain')
    push(stale)
    await flush()
    await clock.advance(100)
    expect(types()).not.toContain('overruled')
    await handle.release()
  })
})
