import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { drain, ready, restore, resumeDrain, startDrain, type Clock, type Ticket } from 'drainable'
import type { FakeClock } from 'drainable/testing'
import { ONE_IN } from '../../../support/cases.js'
import { balancerOf } from '../../../../src/core/balancer/balancer.js'
import { web1 } from '../set-up.js'
import { json, rig, type Rig } from '../rig.js'

/** A clock that throws, from its nth call on or there only; 0: never. */
class BrokenClock implements Clock {
  calls = 0
  readonly #clock: FakeClock
  readonly #at: number
  readonly #always: boolean

  constructor(clock: FakeClock, at: number, always: boolean) {
    this.#clock = clock
    this.#at = at
    this.#always = always
  }

  now(): number {
    this.#count()
    return this.#clock.now()
  }

  setTimeout(fn: () => void, ms: number): () => void {
    this.#count()
    return this.#clock.setTimeout(fn, ms)
  }

  #count(): void {
    this.calls += 1
    const broken = this.#at > 0 && (this.#always ? this.calls >= this.#at : this.calls === this.#at)
    if (broken) throw new Error('the clock is broken')
  }
}

let rejections: unknown[] = []
const note = (error: unknown): void => void rejections.push(error)
beforeEach(() => {
  rejections = []
  process.on('unhandledRejection', note)
  process.on('uncaughtException', note)
})
afterEach(() => {
  process.off('unhandledRejection', note)
  process.off('uncaughtException', note)
})

/** The ticket of a drain that was left. */
async function ticketOf({ clock, lb }: Rig): Promise<Ticket> {
  const run = startDrain(lb, web1, { clock, timeout: '10s' })
  await clock.advance(300)
  const ticket = json(await run.ticket)
  await run.release()
  return ticket
}

type Story = (both: Rig, clock: Clock) => Promise<unknown>

/** A drain and its undo, with a lost answer on the way, all with one clock. */
const stories: Readonly<Record<string, Story>> = {
  'a drain': async ({ lb }, clock) => {
    lb.failNext('throw', { verb: 'apply' })
    await using run = startDrain(lb, web1, { clock, timeout: '10s', settle: '0ms' })
    await run.done
  },
  'a drain with an action': ({ lb }, clock) =>
    drain(lb, web1, { clock, timeout: '10s', settle: '0ms' }, () => Promise.resolve(1)),
  'an undo': async ({ lb }, clock) => {
    await using run = startDrain(lb, web1, { clock, timeout: '10s', settle: '0ms' })
    await run.done
    await run.restore()
  },
  'an abort that undoes': async ({ lb, clock: real }, clock) => {
    const stop = new AbortController()
    lb.occupy(web1)
    await using run = startDrain(lb, web1, { clock, signal: stop.signal, onAbort: 'restore' })
    real.setTimeout(() => stop.abort('enough'), 500)
    await run.done
  },
  'a resume': async (both, clock) => {
    await using run = resumeDrain(both.lb, await ticketOf(both), { clock })
    await run.done
  },
  'restore()': async (both, clock) => restore(both.lb, await ticketOf(both), { clock }),
  'ready()': ({ lb }, clock) => {
    lb.setBehind(web1, 'maint')
    return ready(lb, web1, { clock, waitHealthy: () => Promise.resolve() })
  },
}

/** Whether a run by that clock still has a claim on the member. */
function isCounted(lb: Rig['lb'], clock: Clock): boolean {
  return (balancerOf(lb, clock).record(web1)?.claims ?? []).length > 0
}

/** Plays a story until everything that was asked for has settled; says how far the clock was asked. */
async function play(story: Story, at: number, always: boolean): Promise<number> {
  const both = rig()
  const clock = new BrokenClock(both.clock, at, always)
  const end = (async () => story(both, clock))().catch(() => undefined)
  await both.clock.runUntil(end, 300_000)
  await both.clock.advance(60_000)
  if (isCounted(both.lb, clock)) throw new Error('its run is still counted')
  return clock.calls
}

describe.each(Object.entries(stories))(
  `%s whose clock throws at one in ${ONE_IN} of its calls`,
  (_, story) => {
    // One run for each time that the clock is asked: many, and a loaded machine takes its time.
    const timeout = 180_000
    test.each([false, true])(
      'ends, and leaves no rejection and no run behind (always: %s)',
      { timeout },
      async (always) => {
        const calls = await play(story, 0, always)
        const open: string[] = []
        for (let at = 1; at <= calls; at += ONE_IN) {
          const before = rejections.length
          await play(story, at, always).catch((error: unknown) =>
            open.push(`${at}: ${String(error)}`),
          )
          if (rejections.length > before) open.push(`${at}: ${String(rejections.at(-1))}`)
        }
        expect(open).toEqual([])
      },
    )
  },
)
