import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { startDrain, watch, type Drain } from 'drainable'
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

/** The core decides how seldom it looks at a held drain: this is enough time. */
const PATIENCE = 200 * 3_600_000
/** Looks after which what grows once has grown. */
const WARM = 2_000

let made = 0

export interface Plain extends DrainableProvider {
  readonly looks: number
  active: number
}

/** A balancer that keeps nothing and touches no signal: what grows beside it is the core's. */
export function plain(native?: (ref: MemberRef) => string): Plain {
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
export async function look(
  clock: ReturnType<typeof fakeClock>,
  lb: Plain,
  most: number,
): Promise<void> {
  const from = clock.now()
  const until = lb.looks + most
  while (lb.looks < until) {
    if (clock.now() - from > PATIENCE) throw new Error(`only ${lb.looks} looks`)
    await clock.advance(60_000)
  }
}

/** Collects what is not referenced any more, and says how many bytes are left. */
export async function heap(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let i = 0; i < 4; i += 1) {
    await nextTurn()
    collect()
  }
  return process.memoryUsage().heapUsed
}

/** What looks on. */
export type Looker = 'a drain that is held' | 'a drain that waits for its work' | 'a watch'

/** By how many bytes the heap grows with each look. */
export async function grownByLook(looker: Looker, looks: number): Promise<number> {
  const clock = fakeClock()
  const lb = plain()
  let run: Drain
  if (looker === 'a drain that is held') {
    run = startDrain(lb, web1, { clock })
    await clock.runUntil(run.done)
  } else {
    lb.active = 1
    run =
      looker === 'a watch'
        ? watch(lb, web1, { clock })
        : startDrain(lb, web1, { clock, timeout: Infinity })
  }
  await look(clock, lb, WARM)
  const before = await heap()
  await look(clock, lb, looks)
  const grown = (await heap()) - before
  await run.close()
  return grown / looks
}
