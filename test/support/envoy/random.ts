/** Random drains over three real Envoys under mixed traffic, where the servers know the truth. */
import { startDrain } from 'drainable'
import { envoy } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { Random } from '../../model/random.js'
import type { RandomRun } from '../random-run.js'
import type { Engine } from '../engines.js'
import { delay, until } from '../wait.js'
import { startBackend, type Backend } from './backend.js'
import { ask, askRaw, openWebSocket } from './client.js'
import { startEnvoy, type RunningEnvoy } from './proxy.js'
import { startRelay, type Relay } from './relay.js'
import { setOf } from './sets.js'

const PROXIES = 3
const SERVERS = 4
/** Answers that are held are let go of so often, ms. */
const WORK = 60
/** Seconds that a process goes on after a hot restart. */
const PARENT = 3

/** Requests that are served after a drain, before what came late is counted. */
const LATER = 200
const DISTURBANCES = ['pause', 'restart', 'hot restart', 'cut'] as const

type Disturbance = (typeof DISTURBANCES)[number]

interface Stage {
  readonly proxies: readonly RunningEnvoy[]
  readonly backends: readonly Backend[]
  readonly relay: Relay
  readonly traffic: Traffic
  readonly disturbances: Record<string, number>
}

/** Plays so many drains, each from a seed of its own, one after another. */
export async function drainAtRandom(
  { path }: Engine,
  seed: number,
  drains: number,
): Promise<RandomRun> {
  const backends = await Promise.all(Array.from({ length: SERVERS }, startBackend))
  const sink = grpcEndpoints({ port: 0, initial: [setOf(backends.map(({ port }) => port))] })
  await using relay = await startRelay(() => sink.address?.port)
  const admin: string[] = []
  await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin) })
  await until(() => sink.address, 'a listening sink')
  const proxies = await Promise.all(
    Array.from({ length: PROXIES }, (_, i) =>
      startEnvoy({
        path,
        eds: { grpc: relay.port, delta: i === 1, ads: i === 2 },
        id: `envoy-${i + 1}`,
        reconnect: '0.5s',
        parentShutdown: PARENT,
        bootstrap: { stats_flush_interval: '0.3s' },
      }),
    ),
  )
  admin.push(...proxies.map((proxy) => proxy.admin))
  const traffic = new Traffic(proxies, backends)
  const outcomes: Record<string, number> = {}
  const disturbances: Record<string, number> = {}
  const falseIdles: string[] = []
  try {
    const stage = { proxies, backends, relay, traffic, disturbances }
    for (let n = 0; n < drains; n += 1) {
      // Each has its turn, and the seed says which.
      const first = DISTURBANCES[(seed + n) % DISTURBANCES.length] ?? 'cut'
      const { outcome, fault } = await drainOnce(lb, stage, first, new Random(seed + n))
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
      if (fault !== undefined) falseIdles.push(`seed ${seed + n}: ${fault}`)
    }
  } finally {
    await traffic.end()
    await lb.close()
    await Promise.all([...proxies, ...backends].map((one) => one[Symbol.asyncDispose]()))
  }
  return { outcomes, requests: traffic.requests, disturbances, falseIdles }
}

/** Clients of every proxy. What a restart does to them is not judged: where their requests go is. */
class Traffic {
  requests = 0
  readonly #release: NodeJS.Timeout
  readonly #clients: readonly Promise<void>[]
  #isOver = false

  constructor(proxies: readonly RunningEnvoy[], backends: readonly Backend[]) {
    this.#release = setInterval(() => {
      for (const backend of backends) backend.releaseOne()
    }, WORK)
    this.#clients = proxies.flatMap((proxy, i) =>
      Array.from({ length: 3 }, (_, j) => this.#play(proxy, new Random(10 * i + j))),
    )
  }

  async end(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#clients)
    clearInterval(this.#release)
  }

  /** A request, one that takes its time, a WebSocket, or a connection through the TCP proxy. */
  async #one({ http, tcp }: RunningEnvoy, random: Random): Promise<unknown> {
    switch (random.pick(['short', 'short', 'long', 'WebSocket', 'TCP'] as const)) {
      case 'short':
        return ask(http)
      case 'long':
        return ask(http, '/hold')
      case 'TCP':
        return askRaw(tcp, '/hold')
      case 'WebSocket': {
        const socket = await openWebSocket(http)
        await delay(random.int(10, 400))
        return socket.destroy()
      }
    }
  }

  async #play(proxy: RunningEnvoy, random: Random): Promise<void> {
    while (!this.#isOver) {
      await this.#one(proxy, random).catch(() => undefined)
      this.requests += 1
      await delay(random.int(1, 40))
    }
  }
}

/** What happens to the proxies meanwhile. */
async function disturb(
  { proxies, relay, disturbances }: Stage,
  first: Disturbance,
  random: Random,
): Promise<string[]> {
  const done: string[] = []
  const others = Array.from({ length: random.int(0, 1) }, () => random.pick(DISTURBANCES))
  for (const what of [first, ...others]) {
    await delay(random.int(0, 900))
    const proxy = random.pick(proxies)
    done.push(what)
    disturbances[what] = (disturbances[what] ?? 0) + 1
    if (what === 'cut') relay.cut()
    else if (what === 'restart') await proxy.restart()
    else if (what === 'hot restart') await proxy.hotRestart()
    else {
      proxy.pause()
      await delay(random.int(50, 1_500))
      proxy.resume()
    }
  }
  return done
}

async function drainOnce(
  lb: ReturnType<typeof envoy>,
  stage: Stage,
  first: Disturbance,
  random: Random,
): Promise<{ readonly outcome: string; readonly fault?: string }> {
  const backend = random.pick(stage.backends)
  const ref = { pool: 'web', member: backend.member }
  await using drained = startDrain(lb, ref, { timeout: '60s' })
  let idleAt: number | undefined
  let fault: string | undefined
  drained.on('idle', () => {
    idleAt = performance.now()
    const { verifiedIdle } = drained.report().members[0]!
    const work = backend.held + backend.tunnels
    if (verifiedIdle && work > 0) fault = `idle with ${work} at work`
  })
  drained.on('idle-lost', () => (idleAt = undefined))
  const disturbed = disturb(stage, first, random)
  const report = await drained.done
  const done = await disturbed
  const [found] = report.members
  if (found === undefined) return { outcome: `not begun, ${report.error?.code ?? '?'}` }
  const { outcome, verifiedIdle } = found
  if (idleAt !== undefined && verifiedIdle) {
    const sent = stage.traffic.requests
    await until(() => stage.traffic.requests > sent + LATER, 'more traffic', 60_000)
    const since = idleAt
    const late = backend.requests.filter((at) => at > since).length
    if (late > 0) fault ??= `${late} came after idle`
  }
  await drained.restore()
  const words = fault === undefined ? undefined : `${fault} (${done.join(', ') || 'undisturbed'})`
  return {
    outcome: `${outcome}${verifiedIdle ? '' : ', unverified'}`,
    ...(words && { fault: words }),
  }
}
