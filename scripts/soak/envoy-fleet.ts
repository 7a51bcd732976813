import { engines } from '../../test/support/engines.ts'
import type { FleetSink } from '../../test/support/envoy/fleet-child.ts'
import { startFleet, type Fleet } from '../../test/support/envoy/fleet-kills.ts'

const SINKS: readonly FleetSink[] = ['grpc', 'rest', 'file', 'callback']

/** Fleets at once: a story waits for the most part. */
const FLEETS = 4

/** Where the controller of one story is killed, and whether the proxies are replaced before the next one comes. */
interface Kill {
  readonly killAt: number
  readonly isFresh: boolean
}

/**
 * Kills the controller of a fleet of the newest Envoy at every point, by every sink, with proxies that go on and with new
 * ones.
 *
 * @param only - one of the sinks; empty: all
 * @param runs - how many kills for each sink: all points in turn, again and again; undefined: each point once
 * @returns whether no member that was said idle saw a request, and each drain came to its end
 */
export async function killFleet(
  only: string,
  runs: number | undefined,
  say: (line: string) => void,
): Promise<boolean> {
  let isWhole = true
  for (const sink of SINKS) {
    if (only !== '' && only !== sink) continue
    isWhole = (await killBy(sink, runs, say)) && isWhole
  }
  return isWhole
}

async function killBy(
  sink: FleetSink,
  runs: number | undefined,
  say: (line: string) => void,
): Promise<boolean> {
  const engine = engines('envoy').at(-1)
  if (engine === undefined) throw new Error('no Envoy is installed')
  const startedAt = performance.now()
  await using stack = new AsyncDisposableStack()
  const fleets = await Promise.all(
    Array.from({ length: FLEETS }, async () => stack.use(await startFleet(engine.path, 3, sink))),
  )
  const [first] = fleets
  if (first === undefined) throw new Error('no fleet')
  const whole = await first.play(0)
  const points = Array.from({ length: whole.points }, (_, i) => i + 1)
  const all = [false, true].flatMap((isFresh) =>
    points.map((killAt): Kill => ({ killAt, isFresh })),
  )
  const due = Array.from({ length: runs ?? all.length }, (_, i) => all[i % all.length]).values()
  let kills = 0
  let requests = 0
  let broken = whole.faults.length
  const work = async (fleet: Fleet): Promise<void> => {
    for (const kill of due) {
      if (kill === undefined) return
      const { at, outcomes, faults, sent } = await fleet.play(kill.killAt, kill.isFresh)
      if (at === undefined) continue
      kills += 1
      requests += sent
      const isOver = outcomes.every((line) => /^outcome (removed|gone)/.test(line))
      const found = [...faults, ...(isOver ? [] : outcomes)]
      if (found.length > 0) broken += 1
      say(`${at}${kill.isFresh ? ', new proxies' : ''}: ${[...found, ...outcomes].join('; ')}`)
    }
  }
  await Promise.all(fleets.map(work))
  const took = ((performance.now() - startedAt) / 1_000).toFixed(1)
  say(
    `Envoy ${engine.version}, ${sink}: ${kills} kills in ${took} s, ${requests} requests; ${broken} stories broken`,
  )
  return broken === 0
}
