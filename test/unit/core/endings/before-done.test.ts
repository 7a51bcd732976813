import { describe, expect, it } from 'vitest'
import { drain, ready, startDrain } from 'drainable'
import { rig } from '../rig.js'
import { only, web1 } from '../set-up.js'
import { settled, slowStore } from '../settled.js'

describe('between the end and done', () => {
  it('an abort that restores runs no action', async () => {
    const { clock, lb } = rig()
    const store = slowStore(clock)
    const abort = new AbortController()
    let ran: string | undefined
    const p = drain(
      lb,
      web1,
      {
        clock,
        tickets: store,
        signal: abort.signal,
        onAbort: 'restore',
        onEvent: (e) => {
          if (e.type !== 'idle') return
          store.delay = 1_000
          clock.setTimeout(() => abort.abort(new Error('stop')), 100)
        },
      },
      async () => {
        ran = lb.state(web1)
        await new Promise<void>((r) => void clock.setTimeout(r, 3_000))
        return 1
      },
    )
    const r = await settled(clock, p)
    expect({ ran, r: String(r), state: lb.state(web1) }).toEqual({
      ran: undefined,
      r: 'Error: stop',
      state: 'ready',
    })
  })
  it('an abort that leaves runs no action', async () => {
    const { clock, lb } = rig()
    const store = slowStore(clock)
    const abort = new AbortController()
    let ran: string | undefined
    const p = drain(
      lb,
      web1,
      {
        clock,
        tickets: store,
        signal: abort.signal,
        onEvent: (e) => {
          if (e.type !== 'idle') return
          store.delay = 1_000
          clock.setTimeout(() => abort.abort(new Error('stop')), 100)
        },
      },
      async () => {
        ran = lb.state(web1)
        return 1
      },
    )
    const r = await settled(clock, p)
    expect({ ran, r: String(r) }).toEqual({ ran: undefined, r: 'Error: stop' })
  })
  it('new work or ready() prevents the action', async () => {
    const { clock, lb } = rig()
    const store = slowStore(clock)
    let ran: unknown
    let again: Promise<unknown> | undefined
    const p = drain(
      lb,
      web1,
      {
        clock,
        tickets: store,
        onEvent: (e) => {
          if (e.type !== 'idle') return
          store.delay = 1_000
          clock.setTimeout(() => {
            again = ready(lb, web1, { clock })
          }, 100)
        },
      },
      async (report) => {
        ran = [lb.state(web1), report.outcome, only(report).verifiedIdle]
        return 1
      },
    )
    const r = await settled(clock, p)
    await again
    expect({ ran, r: (r as { code?: string }).code }).toEqual({
      ran: undefined,
      r: 'DRAIN_OVERRULED',
    })
  })
  it('restore() makes done report aborted', async () => {
    const { clock, lb } = rig()
    const store = slowStore(clock)
    let back: Promise<unknown> | undefined
    const h = startDrain(lb, web1, {
      clock,
      tickets: store,
      onEvent: (e) => {
        if (e.type !== 'idle') return
        store.delay = 1_000
        clock.setTimeout(() => {
          back = h.restore()
        }, 100)
      },
    })
    const r = (await settled(clock, h.done)) as { outcome: string }
    expect([r.outcome, lb.state(web1)]).toEqual(['aborted', 'ready'])
    await settled(clock, back!)
  })
})
