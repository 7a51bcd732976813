import { engines } from '../../test/support/engines.ts'
import type { FleetSink } from '../../test/support/envoy/fleet-child.ts'
import { startFleet } from '../../test/support/envoy/fleet-kills.ts'

const SINKS: readonly FleetSink[] = ['grpc', 'rest', 'file', 'callback']

/**
 * Kills the controller of a fleet of the newest Envoy at every point, by every sink, with proxies that go on and with new
 * ones.
 *
 * @param only - one of the sinks; empty: all
 * @returns whether no member that was said idle saw a request, and each drain came to its end
 */
export async function killFleet(only: string, say: (line: string) => void): Promise<boolean> {
  let isWhole = true
  for (const sink of SINKS) {
    if (only !== '' && only !== sink) continue
    isWhole = (await killBy(sink, say)) && isWhole
  }
  return isWhole
}

async function killBy(sink: FleetSink, say: (line: string) => void): Promise<boolean> {
  const engine = engines('envoy').at(-1)
  if (engine === undefined) throw new Error('no Envoy is installed')
  const startedAt = performance.now()
  await using fleet = await startFleet(engine.path, 3, sink)
  const whole = await fleet.play(0)
  let kills = 0
  let broken = whole.faults.length
  for (const isFresh of [false, true]) {
    for (let killAt = 1; killAt <= whole.points; killAt += 1) {
      const { at, outcomes, faults } = await fleet.play(killAt, isFresh)
      if (at === undefined) continue
      kills += 1
      const isOver = outcomes.every((line) => /^outcome (removed|gone)/.test(line))
      const found = [...faults, ...(isOver ? [] : outcomes)]
      if (found.length > 0) broken += 1
      say(`${at}${isFresh ? ', new proxies' : ''}: ${found.join('; ') || outcomes.join('; ')}`)
    }
  }
  const took = ((performance.now() - startedAt) / 1_000).toFixed(1)
  say(`Envoy ${engine.version}, ${sink}: ${kills} kills in ${took} s; ${broken} stories broken`)
  return broken === 0
}
