import assert from 'node:assert/strict'
import type { Clock } from '../../provider/clock.js'
import type { CallContext, Reading } from '../../provider/contract.js'
import { isDrainableError } from '../../provider/error.js'
import { clock, outcome, readingOf } from './bench.js'
import type { Bench } from './bench.js'

/** How long a call may take on a clock on which no caller waits, ms of real time: shorter than any limit of a call. */
const HASTY = 1_000
/** How many times as fast the other clock goes: an answer over loopback is there before a limit of ten seconds. */
const SPEED = 100

/**
 * Clocks by which a call waits for nothing, or hardly. On the first every limit of a call is over before its answer,
 * which is a failure of its own; on the second answers come in time, and only the pauses between them are short.
 */
const CLOCKS: Readonly<Record<string, () => Clock>> = {
  'fires every timer at once': hastyClock,
  'goes a hundred times as fast': fastClock,
}

/** What a provider owes the clock of its calls: every pause, retry and limit is on it. */
export const clocks: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
  'waits by the clock it is given, also for an answer': async (bench) => {
    const damage = bench.hook('damage')
    await bench.present(bench.a)
    for (const [name, make] of Object.entries(CLOCKS)) {
      const mend = await damage('silent')
      await looks(bench, `where none answers, under a clock that ${name}`, make())
      await changes(bench, `where none answers, under a clock that ${name}`, make())
      await mend()
    }
  },

  'tries again by the clock it is given': async (bench) => {
    const damage = bench.hook('damage')
    await bench.present(bench.a)
    for (const [name, make] of Object.entries(CLOCKS)) {
      for (const how of ['cut', 'garbage'] as const) {
        const mend = await damage(how)
        await looks(bench, `after a ${how} answer, under a clock that ${name}`, make())
        await changes(bench, `after a ${how} answer, under a clock that ${name}`, make())
        await mend()
      }
    }
    await bench.harness.disconnect()
    for (const [name, make] of Object.entries(CLOCKS)) {
      await looks(bench, `without the product, under a clock that ${name}`, make())
      await changes(bench, `without the product, under a clock that ${name}`, make())
    }
  },

  'makes its changes by the clock it is given': async (bench) => {
    const { harness, a, b, level } = bench
    const { identity } = await bench.present(a)
    const hold = { kind: 'hold', ref: a, to: level } as const
    const rounds = [
      [
        { ...hold, identity },
        { ...hold, ref: b },
      ],
      [{ ...hold, ref: { ...a, member: 'drainable-nobody' } }, hold],
      [{ kind: 'restore', ref: a, expect: level, to: 'ready', identity }],
    ] as const
    for (const [name, make] of Object.entries(CLOCKS)) {
      for (const round of rounds) {
        const call = outcome(harness.provider.apply(round, ctx(make())))
        await bench.within(call, `a change under a clock that ${name}`, HASTY)
      }
      const refuse = harness.refuseChange?.bind(harness)
      const mend = await refuse?.(0)
      await changes(bench, `with a refusal, under a clock that ${name}`, make())
      await mend?.()
    }
  },
}

async function looks(bench: Bench, what: string, given: Clock): Promise<void> {
  const { a, harness } = bench
  const call = outcome(harness.provider.observe([a], ctx(given)))
  const seen = await bench.within(call, `a look ${what}`, HASTY)
  if ('error' in seen) assert.ok(isDrainableError(seen.error), `${what}: ${String(seen.error)}`)
  else assert.ok(unread(readingOf(seen.value, a)), `${what}: a look without an answer read nothing`)
}

async function changes(bench: Bench, what: string, given: Clock): Promise<void> {
  const { a, level, harness } = bench
  const change = { kind: 'hold', ref: a, to: level } as const
  const call = outcome(harness.provider.apply([change], ctx(given)))
  await bench.within(call, `a change ${what}`, HASTY)
}

function ctx(given: Clock): CallContext {
  return { signal: new AbortController().signal, clock: given }
}

function unread({ scopes }: Reading): boolean {
  return scopes.every(({ state }) => state !== 'read')
}

/** A clock by which every wait is over at once. */
function hastyClock(): Clock {
  let now = clock.now()
  return {
    now: () => now,
    setTimeout(fn, ms) {
      const due = now + ms
      const timer = setImmediate(() => {
        now = Math.max(now, due)
        fn()
      })
      return () => clearImmediate(timer)
    },
  }
}

/** Real time, many times as fast. */
function fastClock(): Clock {
  const from = clock.now()
  return {
    now: () => from + (clock.now() - from) * SPEED,
    setTimeout: (fn, ms) => clock.setTimeout(fn, ms / SPEED),
  }
}
