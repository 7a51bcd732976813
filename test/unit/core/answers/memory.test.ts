import { getEventListeners } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { drain, startDrain, watch } from 'drainable'
import type {
  AdminState,
  Change,
  DrainableProvider,
  LoadScope,
  MemberRef,
  Reading,
} from 'drainable/provider'
import { fakeClock } from 'drainable/testing'
import { web1 } from '../set-up.js'

const LOOKS = 20_000
/** How often a drain that is held may be looked at, at the least, is up to the core: this is enough time. */
const PATIENCE = 40 * 3_600_000

let made = 0

interface Plain extends DrainableProvider {
  readonly looks: number
  active: number
}

/** A balancer that keeps nothing and touches no signal: what grows beside it is the core's. */
function plain(native?: (ref: MemberRef) => string): Plain {
  made += 1
  const own = new Map<string, AdminState>()
  let looks = 0
  const provider: Plain = {
    specVersion: 1,
    name: 'plain',
    instance: `answers-memory-${made}`,
    active: 0,
    get looks() {
      return looks
    },
    describe: async () => ({
      product: 'plain',
      version: '1',
      capabilities: {
        ladder: ['ready', 'drain', 'maint'],
        maint: 'gentle',
        terminate: true,
        remove: true,
        add: true,
        counts: 'requests',
        freshness: 0,
        blind: 0,
        lateBound: 0,
        survivesReload: true,
        countsAfterRemove: true,
      },
    }),
    observe: async (refs, { clock }) => {
      looks += 1
      const asked = refs === 'all' ? [] : refs
      const scope: LoadScope = {
        scope: 'worker',
        incarnation: '1',
        state: 'read',
        sampledAt: clock.now(),
        active: provider.active,
        queued: 0,
        arrivals: 7,
        inForce: true,
      }
      const readings = asked.map((ref): Reading => {
        const state = own.get(ref.member) ?? 'ready'
        return {
          ref,
          present: true,
          identity: `id-${ref.member}`,
          own: state,
          serves: state === 'ready',
          health: 'up',
          scopes: [scope],
          ...(native && { native: native(ref) }),
        }
      })
      return { readings, pools: [{ pool: 'web', serving: 9, total: 9, whenNone: 'refuse' }] }
    },
    apply: async (changes) =>
      changes.map((change: Change) => {
        if (change.kind === 'hold') own.set(change.ref.member, change.to)
        return { ref: change.ref, status: 'applied' }
      }),
    close: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  }
  return provider
}

/** Runs the clock until the provider has been looked at so often. */
async function look(clock: ReturnType<typeof fakeClock>, lb: Plain, most: number): Promise<void> {
  const from = clock.now()
  const until = lb.looks + most
  while (lb.looks < until) {
    if (clock.now() - from > PATIENCE) throw new Error(`only ${lb.looks} looks`)
    await clock.advance(60_000)
  }
}

/** Who listens to which signal, and which signal was combined how often. */
function spySignals(): { readonly most: () => number; readonly mostCombined: () => number } {
  const seen = new Set<AbortSignal>()
  const combined = new Map<AbortSignal, number>()
  const listen = Reflect.get<EventTarget, 'addEventListener'>(
    EventTarget.prototype,
    'addEventListener',
  )
  vi.spyOn(EventTarget.prototype, 'addEventListener').mockImplementation(function (
    this: EventTarget,
    ...args: Parameters<typeof listen>
  ) {
    if (this instanceof AbortSignal) seen.add(this)
    listen.apply(this, args)
  })
  const any = AbortSignal.any.bind(AbortSignal)
  vi.spyOn(AbortSignal, 'any').mockImplementation((signals) => {
    const sources = [...signals]
    for (const source of sources) combined.set(source, (combined.get(source) ?? 0) + 1)
    return any(sources)
  })
  return {
    most: () =>
      Math.max(0, ...[...seen].slice(0, 100).map((s) => getEventListeners(s, 'abort').length)),
    mostCombined: () => Math.max(0, ...combined.values()),
  }
}

/** Collects what nobody holds any more, and says how many bytes are left. */
async function heap(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let i = 0; i < 4; i += 1) {
    await nextTurn()
    collect()
  }
  return process.memoryUsage().heapUsed
}

afterEach(() => vi.restoreAllMocks())

// Fault 18: AbortSignal.any on a signal that lives as long as the drain keeps memory for each look.
describe('20,000 looks of one drain', () => {
  test('that is held combine no signal with one that lives on', async () => {
    const signals = spySignals()
    const clock = fakeClock()
    const lb = plain()
    const run = startDrain(lb, web1, { clock, signal: new AbortController().signal })
    await clock.runUntil(run.done)
    await look(clock, lb, LOOKS)
    await run.release()
    expect(signals.mostCombined()).toBeLessThan(100)
  })

  test('that is held leave no listeners behind', async () => {
    const signals = spySignals()
    const clock = fakeClock()
    const lb = plain()
    const run = startDrain(lb, web1, { clock, signal: new AbortController().signal })
    await clock.runUntil(run.done)
    await look(clock, lb, 2_000)
    const most = signals.most()
    await run.release()
    expect(most).toBeLessThan(10)
  })

  test('that is held leave the heap flat', async () => {
    const clock = fakeClock()
    const lb = plain()
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    await look(clock, lb, 2_000)
    const before = await heap()
    await look(clock, lb, LOOKS)
    const grown = (await heap()) - before
    await run.release()
    expect(grown / LOOKS).toBeLessThan(50)
  })

  test('that waits for its work leave the heap flat', async () => {
    const clock = fakeClock()
    const lb = plain()
    lb.active = 1
    const run = startDrain(lb, web1, { clock, timeout: Infinity })
    await look(clock, lb, 2_000)
    const before = await heap()
    await look(clock, lb, LOOKS)
    const grown = (await heap()) - before
    await run.release()
    expect(grown / LOOKS).toBeLessThan(50)
  })

  test('of a watch leave the heap flat', async () => {
    const clock = fakeClock()
    const lb = plain()
    lb.active = 1
    const run = watch(lb, web1, { clock })
    await look(clock, lb, 2_000)
    const before = await heap()
    await look(clock, lb, LOOKS)
    const grown = (await heap()) - before
    await run.close()
    expect(grown / LOOKS).toBeLessThan(50)
  })
})

// Fault 18: a member left idle is not remembered once nobody drains it.
describe('a drain that is over', () => {
  test('leaves nothing of its members on the heap', async () => {
    const size = 20_000
    const clock = fakeClock()
    const lb = plain(({ member }) => Buffer.alloc(size, member).toString('latin1'))
    const drainAll = async (from: number, to: number): Promise<void> => {
      for (let i = from; i < to; i += 1) {
        const ref = { pool: 'web', member: `web${i}` }
        await clock.runUntil(drain(lb, ref, { clock, settle: 0, seal: false }))
      }
    }
    await drainAll(0, 50)
    const before = await heap()
    await drainAll(50, 350)
    const grown = (await heap()) - before
    expect(lb.looks).toBeGreaterThan(300) // the provider lives: what was kept was kept for it
    expect(grown / 300).toBeLessThan(size / 4)
  })

  test('leaves the map of balancers as it found it', async () => {
    const balancers = (): Map<unknown, unknown> =>
      ((globalThis as Record<symbol, unknown>)[Symbol.for('drainable.balancers.1')] ??
        new Map()) as Map<unknown, unknown>
    const before = balancers().size
    const clock = fakeClock()
    const lb = plain()
    const run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
    const during = balancers().size
    await run.release()
    expect(during).toBe(before + 1)
    expect(balancers().size).toBe(before)
  })
})
