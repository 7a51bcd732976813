import { vi } from 'vitest'
import { type DrainStep, type StepStart } from 'drainable'
import type {
  CallContext,
  Change,
  ChangeResult,
  DrainableProvider,
  PresentReading,
  Reading,
  Snapshot,
} from 'drainable/provider'
import type { FakeCall, FakeClock, FakeProvider } from 'drainable/testing'
import { setUp } from './set-up.js'
import { stepped } from './stepped.js'

let made = 0

/** A clock that stands still and a balancer of its own: no two tests share a name and instance. */
export function balancer(options: Parameters<typeof setUp>[0] = {}): ReturnType<typeof setUp> {
  made += 1
  return setUp({ instance: `answers-${made}`, ...options })
}

/** What another process would read: JSON, nothing else. */
export function json<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}

/** Every call that changes something, oldest first. */
export function applies(lb: FakeProvider): readonly FakeCall[] {
  return lb.requests.filter((call) => call.verb === 'apply')
}

/** Every change of one kind that was asked for, oldest first, with the moment of its call. */
export function sent(
  lb: FakeProvider,
  kind: Change['kind'],
): readonly { readonly at: number; readonly change: Change }[] {
  return applies(lb).flatMap(({ at, changes = [] }) =>
    changes.filter((change) => change.kind === kind).map((change) => ({ at, change })),
  )
}

/** Changes what each look shows. */
export function seeThrough(
  lb: FakeProvider,
  edit: (snapshot: Snapshot, ctx: CallContext) => Snapshot,
): void {
  const observe = lb.observe.bind(lb)
  lb.observe = async (refs, ctx) => edit(await observe(refs, ctx), ctx)
}

/** Changes the readings of members that are there; the rest of a look stays as it is. */
export function withPresent(
  snapshot: Snapshot,
  edit: (reading: PresentReading) => Reading,
): Snapshot {
  return {
    ...snapshot,
    readings: snapshot.readings.map((reading) => (reading.present ? edit(reading) : reading)),
  }
}

/** Stands between the core and the fake's `apply`. */
export function sendThrough(
  lb: FakeProvider,
  send: (
    changes: readonly Change[],
    ctx: CallContext,
    apply: DrainableProvider['apply'],
  ) => Promise<readonly ChangeResult[]>,
): void {
  const apply = lb.apply.bind(lb)
  lb.apply = (changes, ctx) => send(changes, ctx, apply)
}

/** Lets wall time and the machine's uptime go with the fake clock. */
export function wallFollows(clock: FakeClock): void {
  const wall = Date.UTC(2026, 0, 1)
  Object.assign(clock, { wall: undefined }) // as a clock that leaves wall time to the machine
  const now = (): number => wall + clock.now()
  vi.spyOn(Date, 'now').mockImplementation(now)
}

/** Takes {@link wallFollows} back. */
export function restoreWall(): void {
  vi.restoreAllMocks()
}

/** Every step of a drain, its ticket as JSON in between, until its outcome or `most` steps. */
export async function steps(
  lb: DrainableProvider,
  clock: FakeClock,
  start: StepStart,
  most = 200,
): Promise<readonly DrainStep[]> {
  const done = [await stepped(lb, start, { clock })]
  for (let last = done[0]!; last.outcome === undefined && done.length < most;) {
    await clock.advance(Math.max(1, last.againIn))
    last = await stepped(lb, json(last.ticket), { clock })
    done.push(last)
  }
  return done
}
