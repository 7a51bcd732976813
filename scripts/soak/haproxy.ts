import { engines, type Engine } from '../../test/support/engines.ts'
import { drainAtRandom } from '../../test/support/haproxy-soak/random.ts'
import { retryUnderPauses } from '../../test/support/haproxy-soak/pauses.ts'
import { reloadOften } from '../../test/support/haproxy-soak/reloads.ts'
import { rollUnderReloads } from '../../test/support/haproxy-soak/roll.ts'
import { drainAll } from './random-drains.ts'

type Say = (line: string) => void

/** Reloads in one drain. */
const RELOADS = 50
/** A rolling replacement: how long, and between two reloads, ms. */
const ROLL = { lasts: 120_000, reloadEvery: 5_000 }

/** Pauses of HAProxy while a request is between a refused connect and its retry: from when on, and for how long, ms. */
const MOMENTS = Array.from({ length: 11 }, (_, index) => index * 100)
const LENGTHS = [100, 300, 1_000, 2_000, 4_000]
/** What stands still, and what the drain finds. */
const SORTS: readonly { readonly is: string; readonly whole?: true; readonly found?: 'maint' }[] = [
  { is: 'of the worker' },
  { is: 'of master and workers', whole: true },
  { is: 'of the worker, found in maint', found: 'maint' },
  { is: 'of master and workers, found in maint', whole: true, found: 'maint' },
]

/** What can be asked for alone, by name. */
const PARTS = { drains, reloads, pauses, roll }

/**
 * Plays drains at random, fifty reloads in one drain, pauses at every moment of a retry, and two minutes of a rolling replacement under reloads on each
 * installed version of HAProxy.
 *
 * @param only - one of them by its name; nothing: all
 * @returns whether nothing was wrong
 */
export async function soakHaproxy(
  only: string,
  limits: { readonly seed: number; readonly runs: number },
  say: Say,
): Promise<boolean> {
  const chosen = Object.entries(PARTS).filter(([name]) => only === '' || only === name)
  if (chosen.length === 0) say(`no ${only}; there are: ${Object.keys(PARTS).join(', ')}`)
  const results: boolean[] = []
  for (const [, play] of chosen) results.push(await play(limits, say))
  return results.length > 0 && results.every(Boolean)
}

function drains(limits: { readonly seed: number; readonly runs: number }, say: Say) {
  return drainAll('haproxy', drainAtRandom, limits, say)
}

async function reloads(_: unknown, say: Say): Promise<boolean> {
  const results = await Promise.all(
    engines('haproxy').map(async (engine) => {
      const { outcome, sealed, verifiedIdle, why, whole, scopes, growth } = await reloadOften(
        engine,
        RELOADS,
      )
      say(
        `haproxy ${engine.version}: ${RELOADS} reloads in one drain: ${outcome}${sealed ? ', sealed' : ''}${verifiedIdle ? ', verified' : `, unverified (${why.join('; ')})`}, ${scopes} process in the ticket, which grew by ${growth} characters`,
      )
      // The last old worker may end between two looks: never without a word.
      const said = verifiedIdle || why.length > 0
      return outcome === 'idle' && sealed && said && whole && scopes === 1 && growth < 2_000
    }),
  )
  return results.every(Boolean)
}

async function pauses(_: unknown, say: Say): Promise<boolean> {
  const all = engines('haproxy').flatMap((engine) => SORTS.map((sort) => ({ engine, sort })))
  const results: boolean[] = []
  // One sort after the other: each has a HAProxy of its own for every moment.
  for (const { engine, sort } of all) results.push(await pausesOf(engine, sort, say))
  return results.every(Boolean)
}

async function pausesOf(
  engine: Engine,
  { is, ...sort }: (typeof SORTS)[number],
  say: Say,
): Promise<boolean> {
  const wrong: string[] = []
  let [count, unproved] = [0, 0]
  for (const ms of LENGTHS) {
    await Promise.all(
      MOMENTS.map(async (at) => {
        const bursts = ms === 100 ? [200, 400].map((later) => [at + later, ms] as const) : []
        const seen = await retryUnderPauses(engine, { pauses: [[at, ms], ...bursts], ...sort })
        count += 1
        const which = `a pause of ${ms} ms at ${at} ms`
        if (seen.early && seen.server === 's1') wrong.push(`FALSE IDLE, ${which}`)
        if (seen.outcome !== 'idle') wrong.push(`${seen.outcome ?? 'no outcome'}, ${which}`)
        if (seen.verifiedIdle !== true) unproved += 1
      }),
    )
  }
  say(
    `haproxy ${engine.version}: ${count} pauses in a turn-around, ${is}: ${unproved} not proved, ${wrong.length} wrong`,
  )
  for (const line of wrong) say(`  ${line}`)
  return wrong.length === 0
}

async function roll(_: unknown, say: Say): Promise<boolean> {
  const one = async (engine: Engine, stateFile: boolean): Promise<boolean> => {
    const rolled = await rollUnderReloads(engine, { ...ROLL, stateFile })
    const { turns, reloads, requests, failed, stickyFailed, refused, slowest } = rolled
    say(
      `haproxy ${engine.version}, ${stateFile ? 'state file' : 'no state file'}: ${turns} servers replaced under ${reloads} reloads, the slowest took ${slowest.toFixed(0)} ms; of ${requests} requests ${failed} without and ${stickyFailed} with a cookie failed`,
    )
    for (const line of refused) say(`  ${line}`)
    return refused.length === 0 && !(stateFile && failed > 0)
  }
  const all = engines('haproxy').flatMap((engine) => [true, false].map((file) => one(engine, file)))
  return (await Promise.all(all)).every(Boolean)
}
