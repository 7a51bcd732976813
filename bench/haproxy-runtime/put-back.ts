/**
 * How long after the first answer of the process that a reload has started the hold is in it, on each HAProxy of the
 * engines folder: a drain under way, and one that is held during an action. A process of its own looks at the server
 * every millisecond.
 *
 * `npm run bench haproxy-runtime/put-back`
 */
import { drain, startDrain } from 'drainable'
import { engines } from '../../test/support/engines.js'
import { Haproxy, until } from '../../test/support/haproxy.js'
import { site, web1 } from '../../test/support/haproxy-lab.js'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import type { Backends } from './support/backends.js'
import { Child } from './support/child.js'
import { spread } from './support/figures.js'
import type { Witness } from './support/witness.js'
import { request } from '../../test/support/haproxy-traffic.js'

const RELOADS = 50

await using backends = new Child<Backends>('./backends.ts')
await using witness = new Child<Witness>('./witness.ts')

type Engine = ReturnType<typeof engines>[number]

async function reloads(haproxy: Haproxy): Promise<readonly number[]> {
  await witness.call('begin', haproxy.socket, 'web', 's1')
  await until(async () => (await witness.call('seen')).length === 1, 'the first process')
  for (let count = 2; count <= RELOADS + 1; count += 1) {
    await haproxy.reload()
    const isHeld = async (): Promise<boolean> => {
      const seen = await witness.call('seen')
      return seen.length >= count && seen.at(-1)?.held !== undefined
    }
    await until(isHeld, 'the hold is put back')
  }
  const seen = await witness.call('end')
  return seen.slice(1).map(({ answered, held = Infinity }) => held - answered)
}

async function measure(engine: Engine, way: 'draining' | 'held'): Promise<void> {
  await using haproxy = await Haproxy.start({
    engine,
    global: '  stats maxconn 100',
    config: (port) => site(port, 'web'),
  })
  for (const name of ['s1', 's2']) await backends.call('start', name, haproxy.port(name))
  await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
  let gaps: readonly number[] = []
  if (way === 'held') {
    await drain(lb, web1, { timeout: '30s' }, async () => {
      gaps = await reloads(haproxy)
    })
  } else {
    const work = request(haproxy.port('web'), '/hold', { cookie: 's1' })
    await backends.call('busy', 's1', 1)
    await using drained = startDrain(lb, web1, { timeout: Infinity })
    await drained.inForce
    gaps = await reloads(haproxy)
    await backends.call('release', 's1')
    await work
  }
  console.log(`HAProxy ${engine.version}, ${way}: held after ${spread(gaps)}`)
}

for (const engine of engines('haproxy'))
  for (const way of ['draining', 'held'] as const) await measure(engine, way)
