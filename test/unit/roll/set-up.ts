import type { DrainableProvider, RollEvent, ServerDrained } from 'drainable'
import type { PresentReading } from 'drainable/provider'
import { fakeClock, fakeProvider, type FakeClock, type FakeProvider } from 'drainable/testing'

export const web = { pool: 'web' } as const

/** A clock that stands still and a balancer in memory with so many members in one pool. */
export function setUp(
  size = 4,
  options: Partial<Parameters<typeof fakeProvider>[0]> = {},
): { clock: FakeClock; lb: FakeProvider; refs: { pool: string; member: string }[] } {
  const clock = fakeClock(1_000)
  const names = Array.from({ length: size }, (_, n) => `web${n + 1}`)
  const lb = fakeProvider({ pools: { web: names }, clock, ...options })
  return { clock, lb, refs: names.map((member) => ({ pool: 'web', member })) }
}

/** The same balancer, whose readings a function changes. */
export function seenAs(
  lb: FakeProvider,
  change: (reading: PresentReading) => PresentReading,
): DrainableProvider {
  const { name, instance, specVersion } = lb
  return {
    name,
    instance,
    specVersion,
    describe: (ctx) => lb.describe(ctx),
    apply: (changes, ctx) => lb.apply(changes, ctx),
    close: () => lb.close(),
    [Symbol.asyncDispose]: () => lb.close(),
    observe: async (refs, ctx) => {
      const snapshot = await lb.observe(refs, ctx)
      const readings = snapshot.readings.map((one) => (one.present ? change(one) : one))
      return { ...snapshot, readings }
    },
  }
}

/** A caller's function that notes its calls, and how many are under way at most. */
export function actor(
  clock: FakeClock,
  work: (server: ServerDrained) => Promise<void> = () => Promise.resolve(),
): {
  act: (server: ServerDrained) => Promise<void>
  calls: string[]
  most: () => number
} {
  const calls: string[] = []
  let now = 0
  let most = 0
  return {
    calls,
    most: () => most,
    act: async (server) => {
      calls.push(`${server.ref.member} ${server.attempt}`)
      now += 1
      most = Math.max(most, now)
      try {
        await new Promise<void>((resolve) => void clock.setTimeout(resolve, 1_000))
        await work(server)
      } finally {
        now -= 1
      }
    },
  }
}

/** The members of events of one kind, in order. */
export function membersOf(events: readonly RollEvent[], type: RollEvent['type']): string[] {
  return events.flatMap((event) =>
    event.type === type && 'ref' in event ? [event.ref.member] : [],
  )
}
