/**
 * For how long a reload opens a server that is held during an action, on each HAProxy of the engines folder, with and
 * without a state file: clients with the server's cookie ask all the time, each time on a new connection, from a process of
 * their own.
 *
 * `npm run bench haproxy-runtime/reload-gap`
 */
import { drain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { engines } from '../../test/support/engines.js'
import { Haproxy, until } from '../../test/support/haproxy.js'
import { site, web1 } from '../../test/support/haproxy-lab.js'
import type { Backends } from './support/backends.js'
import { Child } from './support/child.js'
import type { Clients } from './support/clients.js'
import { spread } from './support/figures.js'

const RELOADS = 100
/** So many requests more, and none is under way that was begun before. */
const LATER = 20

type Engine = ReturnType<typeof engines>[number]

await using backends = new Child<Backends>('./backends.ts')
await using clients = new Child<Clients>('./clients.ts')

async function measure(engine: Engine, stateFile: boolean): Promise<void> {
  const lines = stateFile ? '  load-server-state-from-file global\n  retries 0' : '  retries 0'
  await using haproxy = await Haproxy.start({
    engine,
    // Reloads that come so fast leave old workers behind.
    global: `  stats maxconn 100\n${stateFile ? '  server-state-file state' : ''}`,
    config: (port) => site(port, 'web', { backend: lines }),
  })
  for (const name of ['s1', 's2']) await backends.call('start', name, haproxy.port(name))
  await using lb = haproxyRuntime({ socket: haproxy.socket, master: haproxy.master })
  const gaps: number[] = []
  const sum = { requests: 0, failed: 0, arrived: 0 }
  const take = ({ requests, failed, hits }: Awaited<ReturnType<Clients['end']>>): void => {
    sum.requests += requests
    sum.failed += failed
    sum.arrived += hits.length
    gaps.push((hits.at(-1) ?? 0) - (hits[0] ?? 0))
  }
  await drain(lb, web1, { timeout: '30s' }, async () => {
    await clients.call('begin', haproxy.port('web'), 's1', 1)
    for (let n = 0; n < RELOADS; n += 1) {
      await clients.call('asked')
      if (stateFile) await haproxy.keepState()
      await haproxy.reload()
      const closed = async (): Promise<boolean> =>
        (await haproxy.stat('web', 's1', 'status')) === 'MAINT'
      await until(closed, 'the hold is put back')
      const total = await backends.call('total', 's2')
      await until(async () => (await backends.call('total', 's2')) > total + LATER, 'requests')
      take(await clients.call('asked'))
    }
    await clients.call('end')
  })
  console.log(
    `HAProxy ${engine.version}, ${stateFile ? 'state file' : 'no state file'}: open for ${spread(gaps)}; ${sum.arrived} of ${sum.requests} requests came to the server, ${sum.failed} failed`,
  )
}

for (const engine of engines('haproxy'))
  for (const stateFile of [false, true]) await measure(engine, stateFile)
