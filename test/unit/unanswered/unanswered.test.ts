/**
 * Each verb, with one of its calls of a store, a lease or a callback that gets no answer: it ends all the same, says who
 * does not answer, and leaves nothing drained in silence.
 */
import { describe, expect, test } from 'vitest'
import { isCi } from '../../support/skipped.js'
import { verbs, type UnderWay, type Verb } from './verbs.js'
import { World } from './world.js'

const SHARE = isCi() ? 1 : 13

/** More than all limits that may come one after the other, in milliseconds of the clock. */
const LONG = 180_000

/** Told what a promise ended with. */
async function endOf(promise: Promise<unknown>): Promise<{ value?: unknown; error?: unknown }> {
  try {
    return { value: await promise }
  } catch (error) {
    return { error }
  }
}

interface Begun {
  readonly world: World
  readonly under: UnderWay
  readonly abort: AbortController
  /** Members that were down before. */
  readonly before: ReadonlySet<string>
}

async function begun(verb: Verb, hangAt: number): Promise<Begun> {
  const world = new World(hangAt)
  const ticket = await verb.before?.(world)
  const before = new Set(world.down)
  const abort = new AbortController()
  const under = verb.begin(world, abort.signal, ticket!)
  under.done.catch(() => undefined)
  return { world, under, abort, before }
}

/** How the verb goes where every call is answered. */
async function answered(verb: Verb): Promise<{ calls: readonly string[]; end: unknown }> {
  const { world, under } = await begun(verb, -1)
  const end = await world.clock.runUntil(endOf(under.done), LONG)
  await world.clock.runUntil(endOf(under.close?.() ?? Promise.resolve()), LONG)
  return { calls: [...world.calls], end }
}

/** The calls that are tried: all of them with `CI` set, the first of each name and some others elsewhere. */
function positions(calls: readonly string[]): readonly (readonly [number, string])[] {
  const all = [...calls.entries()]
  return all.filter(([n, name]) => n % SHARE === 0 || calls.indexOf(name) === n)
}

/** Runs until the call has come that gets no answer, or the verb is over. */
async function untilHung({ world, under }: Begun): Promise<boolean> {
  const over = endOf(under.done).then(() => false)
  return world.clock.runUntil(Promise.race([world.hung.then(() => true), over]), LONG)
}

/** Who is said not to answer. */
const NAMED = /the ticket store|onTicket|lease/

/** Calls that may be missed without a word: a lease is renewed in time by the next try and is over by itself. */
const QUIET = new Set(['renew', 'release'])

/** Every member that is down is in the report, or in an error, unless it is to stay down. */
function expectSaid({ world, before }: Begun, { keeps }: Verb, end: unknown): void {
  if (keeps === true) return
  world.hear(end)
  const all = world.said.join('\n')
  for (const one of world.down) if (!before.has(one)) expect(all).toContain(one.slice(2))
}

describe.each(verbs)('$name', (verb) => {
  test('ends though one of its calls gets no answer, and names it', async () => {
    const { calls } = await answered(verb)
    expect(calls.length).toBeGreaterThan(0)
    for (const [n, call] of positions(calls)) {
      const at = await begun(verb, n)
      const { world, under } = at
      await untilHung(at)
      await world.clock.advance(1_500)
      world.note(under.why?.() ?? [])
      const end = await world.clock.runUntil(endOf(under.done), LONG)
      expectSaid(at, verb, end)
      await world.clock.runUntil(endOf(under.close?.() ?? Promise.resolve()), LONG)
      await world.clock.advance(60_000) // what nobody waits for has its time too
      if (!QUIET.has(call)) expect(world.said.join('\n'), `${n} ${call}`).toMatch(NAMED)
    }
  })

  test.each(['abort', 'close'] as const)(
    'ends by %s while one of its calls gets no answer',
    async (by) => {
      const { calls } = await answered(verb)
      for (const [n, call] of positions(calls)) {
        const at = await begun(verb, n)
        const { world, under, abort } = at
        await untilHung(at)
        const since = world.clock.now()
        if (by === 'abort') abort.abort(new Error('given up'))
        const closed = by === 'close' ? under.close?.() : undefined
        const end = await world.clock.runUntil(endOf(under.done), LONG)
        await world.clock.runUntil(endOf(closed ?? Promise.resolve()), LONG)
        expect(world.clock.now() - since, `${n} ${call}`).toBeLessThanOrEqual(
          by === 'abort' || under.close !== undefined ? 15_000 : LONG,
        )
        expectSaid(at, verb, end)
        await world.clock.runUntil(endOf(under.close?.() ?? Promise.resolve()), LONG)
      }
    },
  )

  test('leaves no ticket of what is over, also where it was carried out late', async () => {
    const { calls } = await answered(verb)
    for (const [n, call] of positions(calls)) {
      const at = await begun(verb, n)
      const { world, under } = at
      await untilHung(at)
      const { value } = await world.clock.runUntil(endOf(under.done), LONG)
      await world.clock.runUntil(endOf(under.close?.() ?? Promise.resolve()), LONG)
      await world.carryOut()
      await world.clock.advance(60_000)
      const { outcome } = Object(value) as { readonly outcome?: string }
      if (outcome !== 'restored' && outcome !== 'done') continue
      // Where it was the delete itself that got no answer, nobody knows whether it was carried out.
      const tickets = [...world.kept.keys()].filter((key) => !key.startsWith('drainable='))
      expect(tickets, `${n} ${call}`).toEqual([])
    }
  })
})
