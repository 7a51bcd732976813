import { startDrain, type Ticket } from 'drainable'
import { haproxyDataplane, type HaproxyDataplaneOptions } from 'drainable/haproxy-dataplane'
import type { CallContext, Change, ChangeResult, MemberRef, Reading } from 'drainable/provider'
import type { DrainableProvider } from 'drainable/provider'
import { startFake, type DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { expect } from 'vitest'

/** What one test works with: a fake and a provider on it. */
export interface Rig extends AsyncDisposable {
  readonly fake: DataplaneFake
  readonly lb: DrainableProvider
}

/** A provider on a fake, with the credentials that the fake expects. */
export function connect(
  fake: Pick<DataplaneFake, 'url'>,
  options: Partial<HaproxyDataplaneOptions> = {},
): DrainableProvider {
  return haproxyDataplane({ url: fake.url, username: 'admin', password: 'secret', ...options })
}

/** A fake with a provider on it. */
export async function rig(
  fakeOptions: Parameters<typeof startFake>[0] = {},
  options: Partial<HaproxyDataplaneOptions> = {},
): Promise<Rig> {
  const fake = await startFake(fakeOptions)
  const lb = connect(fake, options)
  return {
    fake,
    lb,
    [Symbol.asyncDispose]: async () => {
      await lb.close()
      await fake.close()
    },
  }
}

/** A real clock and a signal that never fires, unless one is given. */
export function context(
  signal: AbortSignal = new AbortController().signal,
  later = 0,
): CallContext {
  return {
    signal,
    clock: {
      now: () => performance.now() + later,
      setTimeout: (fn, ms) => {
        const timer = setTimeout(fn, ms)
        return () => clearTimeout(timer)
      },
    },
  }
}

/** The reading of one member. @param later - by how many milliseconds its clock is ahead */
export async function look(lb: DrainableProvider, ref: MemberRef, later = 0): Promise<Reading> {
  const { readings } = await lb.observe([ref], context(undefined, later))
  return readings[0]!
}

/** The reading of a member that must be there. */
export async function present(lb: DrainableProvider, ref: MemberRef, later = 0) {
  const reading = await look(lb, ref, later)
  if (!reading.present) throw new Error(`${ref.pool}/${ref.member} is not there`)
  return reading
}

/** The result of one change. */
export function change(lb: DrainableProvider, one: Change): Promise<ChangeResult> {
  return meanwhile(lb.apply([one], context()).then(([result]) => result!))
}

/** Work that goes on beside other steps of a test: if one of those fails, its end at the close has no other listener. */
export function meanwhile<T>(work: Promise<T>): Promise<T> {
  work.catch(() => undefined)
  return work
}

/** Looks until something holds; no fixed wait. */
export async function until<T>(
  what: string,
  check: () => Promise<T | undefined | false>,
  limit = 30_000,
): Promise<T> {
  const deadline = performance.now() + limit
  for (;;) {
    const found = await check()
    if (found !== undefined && found !== false) return found
    if (performance.now() > deadline) throw new Error(`not within ${limit} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/**
 * A first call by the real clock, through a provider of its own: what it loads and connects is nothing that
 * a clock which goes by requests knows of.
 */
export async function warm(fake: Pick<DataplaneFake, 'url'>): Promise<void> {
  await using lb = connect(fake)
  await lb.describe(context())
}

/** A drain of web1 that is idle and held, and its ticket: as a process leaves them that dies then. */
export async function leaveDrained(lb: DrainableProvider): Promise<Ticket> {
  let ticket: Ticket | undefined
  const onTicket = (next: Ticket | null): void => void (ticket = next ?? ticket)
  const run = startDrain(lb, { pool: 'web', member: 'web1' }, { timeout: '60s', onTicket })
  expect((await run.done).outcome).toBe('idle')
  await run.release()
  return ticket!
}
