import { describe, expect, it } from 'vitest'
import { startDrain, type DrainReport, type Reading } from 'drainable'
import { rig, showAs } from '../rig.js'
import { web1 } from '../set-up.js'
import { flush, settled, unhandledRejections } from '../settled.js'

const unhandled = unhandledRejections()

describe('malformed readings', () => {
  for (const [name, field] of Object.entries({
    hints5: { hints: 5 },
    hintsObj: { hints: {} },
    hintsNull: { hints: null },
    unver: { unverified: {} },
    native: { native: 10n },
    nativeFn: { native: () => 1 },
    addr: { address: {} },
  })) {
    it(`${name}: done resolves`, async () => {
      const { clock, lb } = rig()
      lb.occupy(web1)
      showAs(lb, (r) => ({ ...r, ...field }) as unknown as Reading)
      await using h = startDrain(lb, web1, { clock, timeout: '10s', onTicket: () => undefined })
      const r = await settled(clock, h.done)
      let t: unknown
      try {
        t = (await h.ticket).id
      } catch (e) {
        t = e
      }
      let w: unknown
      try {
        w = h.why().length > 0
      } catch (e) {
        w = e
      }
      expect({ o: (r as { outcome?: string }).outcome ?? r, t: typeof t, w, unhandled }).toEqual({
        o: 'timeout',
        t: 'string',
        w: true,
        unhandled: [],
      })
    })
  }
  it('with a getter that throws later: done resolves', async () => {
    const { clock, lb } = rig()
    lb.occupy(web1)
    let n = 0
    showAs(lb, (r) => {
      const c = { ...r }
      Object.defineProperty(c, 'scopes', {
        enumerable: true,
        get: () => {
          n += 1
          if (n > 40 && n % 3 === 0) throw new Error('getter')
          return r.scopes
        },
      })
      return c
    })
    await using h = startDrain(lb, web1, { clock, timeout: '10s' })
    const r = await settled(clock, h.done)
    expect({ o: typeof (r as { outcome?: string }).outcome, unhandled }).toEqual({
      o: 'string',
      unhandled: [],
    })
  })
})

describe('a reading that throws where the core reads it', () => {
  it('ends the drain with the error', async () => {
    const { clock, lb } = rig()
    lb.occupy(web1)
    let broken = false
    const observe = lb.observe.bind(lb)
    lb.observe = async (refs, ctx) => {
      const snapshot = await observe(refs, ctx)
      if (!broken) return snapshot
      let asked = 0
      const handler: ProxyHandler<Reading> = {
        get: (target, key) => {
          // Only after the gate has let it pass.
          if (key === 'scopes' && (asked += 1) > 3) throw new Error('a getter that throws')
          return Reflect.get(target, key) as unknown
        },
      }
      return { ...snapshot, readings: snapshot.readings.map((r) => new Proxy(r, handler)) }
    }
    const handle = startDrain(lb, web1, { clock, timeout: '10s' })
    await flush()
    await clock.advance(200)
    broken = true
    const report = (await settled(clock, handle.done)) as DrainReport
    expect(report.outcome).toBe('unreachable')
    expect(report.members[0]?.error?.message ?? report.error?.message).toContain(
      'a getter that throws',
    )
    expect(unhandled).toEqual([])
    expect(clock.pending).toBe(0)
  })
})
