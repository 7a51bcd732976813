/**
 * `npm run demo -- --fleet`: four servers behind two HAProxy and an Envoy at once, rolled one after another under load. Each
 * is killed at the moment in which it is idle on all three, and replaced.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { combineProviders, select, startRoll } from 'drainable'
import type { DrainableProvider, Reading, RollReport } from 'drainable'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { Backend } from './backend.ts'
import { freePort } from '../ports.ts'
import { findEngine, startHaproxy } from './balancer.ts'
import { Clients } from './clients.ts'
import { findEnvoy, startEnvoy } from './envoy.ts'
import { Screen } from './screen.ts'

const NAMES = ['web1', 'web2', 'web3', 'web4'] as const
const AT_LEAST = 2_000

/** @returns the status to exit with */
export async function runFleet(): Promise<number> {
  const screen = new Screen()
  const say = (text: string): void => screen.say(text)
  const [haproxy, proxy] = [findEngine(say), findEnvoy(say)]
  if (haproxy === undefined || proxy === undefined) {
    say(
      `--fleet needs a real ${haproxy === undefined ? 'HAProxy' : 'Envoy'}, and none is available here`,
    )
    return 1
  }
  await using stack = new AsyncDisposableStack()
  const backends: Backend[] = []
  for (const name of NAMES) {
    const backend = stack.use(new Backend(name, await freePort()))
    await backend.start()
    backends.push(backend)
  }
  const edgeA = stack.use(await startHaproxy(haproxy, backends))
  const edgeB = stack.use(await startHaproxy(haproxy, backends))
  const mesh = stack.use(await startEnvoy(proxy, backends))
  say(`${NAMES.length} servers behind two HAProxy ${edgeA.version} and an Envoy ${mesh.version}`)
  const all = stack.use(
    combineProviders({
      edgeA: haproxyRuntime({ socket: edgeA.socket, master: edgeA.master }),
      edgeB: haproxyRuntime({ socket: edgeB.socket, master: edgeB.master }),
      mesh: envoy({
        endpoints: fileEndpoints({ cluster: 'web', path: mesh.file }),
        admin: [mesh.admin],
      }),
    }),
  )
  const clients = [edgeA, edgeB, mesh].map(({ port }) => new Clients(port))
  for (const some of clients) some.browse(8)
  const view = new AbortController()
  const watching = watchServers(all, screen, clients, view.signal)
  const counts: number[] = []
  let report: RollReport
  try {
    report = await rollAll(all, backends, clients, counts, say)
    while (total(clients, 'requests') < AT_LEAST) await pause(50)
  } finally {
    await Promise.all(clients.map((some) => some.stop()))
    view.abort()
    await watching
  }
  return summary(report, clients, counts, say, [edgeA.version, mesh.version])
}

async function rollAll(
  all: DrainableProvider,
  backends: readonly Backend[],
  clients: readonly Clients[],
  counts: number[],
  say: (text: string) => void,
): Promise<RollReport> {
  const targets = ['edgeA', 'edgeB', 'mesh'].map((balancer) => ({ pool: 'web', balancer }))
  await using run = startRoll(all, targets, {
    // One machine here stands for all: a server is told by its port.
    group: ({ port }) => String(port),
    act: async ({ ref }) => {
      const backend = backends.find(({ name }) => name === ref.member)
      if (backend === undefined) throw new Error(`${ref.member} is not one of the demo's servers`)
      const { active } = await backend.end()
      counts.push(active)
      say(`${ref.member}: idle on all three at once, killed with ${active} in hand`)
      await backend.start()
    },
    timeout: '30s',
    waitHealthy: '15s',
  })
  run.on('batch', ({ refs }) => {
    const name = refs[0]?.member ?? ''
    say(`${name}: taken out of both HAProxy and the Envoy`)
    // Work that is under way when its drain begins, on each of them.
    for (const some of clients) for (const ms of [600, 900, 1_200]) void some.slow(name, ms)
  })
  run.on('healthy', ({ ref }) => say(`${ref.member}: replaced, healthy, and serving again`))
  return await run.done
}

/** The live view: what all three hold for each server together, and the state on each. */
async function watchServers(
  all: DrainableProvider,
  screen: Screen,
  clients: readonly Clients[],
  signal: AbortSignal,
): Promise<void> {
  if (!screen.isLive) return
  while (!signal.aborted) {
    const found: readonly Reading[] = await select(all, { address: '127.0.0.1' }).catch(() => [])
    const readings: readonly Member[] = found.filter(hasPort)
    const servers = [...Map.groupBy(readings, ({ port }) => port).values()]
    screen.show(
      servers.map((members) => ({
        name: members[0]?.ref.member ?? '',
        state: '',
        active: members.reduce((sum, { scopes }) => sum + activeOf(scopes), 0),
        queued: 0,
        note: members.map(({ ref, own }) => `${ref.balancer ?? ''} ${own}`).join(', '),
      })),
      `  ${total(clients, 'requests')} requests, ${clients.flatMap(({ errors }) => errors).length} errors`,
    )
    await pause(100)
  }
  screen.end()
}

type Present = Extract<Reading, { present: true }>

type Member = Present & { readonly port: number }

function hasPort(reading: Reading): reading is Member {
  return reading.present && reading.port !== undefined
}

function activeOf(scopes: Present['scopes']): number {
  return scopes.reduce((sum, { active }) => sum + active, 0)
}

function total(clients: readonly Clients[], what: 'requests' | 'resent'): number {
  return clients.reduce((sum, some) => sum + some[what], 0)
}

function summary(
  report: RollReport,
  clients: readonly Clients[],
  backendCounts: readonly number[],
  say: (text: string) => void,
  [haproxy = '', proxy = '']: readonly string[],
): number {
  const errors = clients.flatMap((some) => some.errors)
  const requests = total(clients, 'requests')
  say('')
  say(`${requests} requests, ${errors.length} errors`)
  for (const error of [...errors.slice(0, 10)]) say(`  ${error}`)
  for (const { refs, error, drained } of report.servers) {
    const idle = drained?.members.every(({ verifiedIdle }) => verifiedIdle) === true
    const how = error?.message ?? (idle ? 'proved idle on each balancer' : 'idle, not verified')
    say(`${refs[0]?.member ?? ''}: ${how}`)
  }
  const ok =
    report.outcome === 'done' &&
    errors.length === 0 &&
    backendCounts.length === NAMES.length &&
    backendCounts.every((count) => count === 0)
  const line = {
    ok,
    engines: { haproxy, envoy: proxy },
    requests,
    errors: errors.length,
    resent: total(clients, 'resent'),
    outcome: report.outcome,
    seconds: Math.round(report.elapsed / 100) / 10,
    backendCounts,
  }
  say(JSON.stringify(line))
  return ok ? 0 : 1
}
