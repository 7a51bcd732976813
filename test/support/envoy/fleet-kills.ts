/** A fleet of real Envoys whose controller is killed, and what its servers saw meanwhile. */
import { spawn, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { freePort } from '../haproxy.js'
import { until } from '../wait.js'
import { startBackend, type Backend } from './backend.js'
import type { EdsSource } from './bootstrap.js'
import { ask, startTraffic } from './client.js'
import type { FleetChildOptions, FleetSink, KillAt } from './fleet-child.js'
import { startEnvoy, workDir, type RunningEnvoy } from './proxy.js'
import { setOf, writeEds } from './sets.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const CHILD = fileURLToPath(new URL('fleet-child.ts', import.meta.url))

/** Answers that are held are let go of so often, ms. */
const WORK = 60

/** What came of one story. */
export interface FleetStory {
  /** Where the first controller was killed; undefined: it was not. */
  readonly at: string | undefined
  readonly outcomes: readonly string[]
  /** Requests that came after idle was said, and what clients saw that they should not. */
  readonly faults: readonly string[]
  /** Requests of its clients. */
  readonly sent: number
  /** How many points there were for the first controller. */
  readonly points: number
}

export interface Fleet extends AsyncDisposable {
  /**
   * One drain until removed, by a controller that is killed there and by the next one.
   *
   * @param isFresh - whether the proxies are replaced in between: then the ticket alone knows of the drain
   */
  play(killAt: KillAt, isFresh?: boolean): Promise<FleetStory>
}

export async function startFleet(
  path: string,
  count = 2,
  sink: FleetSink = 'grpc',
): Promise<Fleet> {
  const dir = await workDir()
  const backends = await Promise.all(Array.from({ length: 3 }, startBackend))
  const [a] = backends
  if (a === undefined) throw new Error('no server')
  const port = await freePort()
  const file = `${dir.path}/web.json`
  const sets = [setOf(backends.map((backend) => backend.port))]
  await writeEds(file, sets)
  const edsOf = (i: number): EdsSource => {
    if (sink === 'grpc') return { grpc: port, delta: i % 2 === 1 }
    return sink === 'rest' ? { rest: port } : { file }
  }
  const proxies = await Promise.all(
    Array.from({ length: count }, (_, i) =>
      startEnvoy({
        path,
        eds: edsOf(i),
        id: `envoy-${i + 1}`,
        reconnect: '0.5s',
      }),
    ),
  )
  const children = new Set<Controller>()
  // Work in flight at every moment, or an idle that comes too early has nothing to be wrong about.
  const work = setInterval(() => {
    for (const backend of backends) backend.releaseOne()
  }, WORK)
  const options = {
    sink,
    port,
    file,
    admin: proxies.map(({ admin }) => admin),
    sets,
    ref: { pool: 'web', member: a.member },
  }
  let stories = 0
  return {
    play: async (killAt, isFresh = false) => {
      stories += 1
      const tickets = `${dir.path}/${stories}`
      return playStory({ ...options, tickets, killAt }, { a, proxies, children, isFresh })
    },
    [Symbol.asyncDispose]: async () => {
      clearInterval(work)
      for (const backend of backends) backend.release()
      for (const child of children) child.kill()
      await Promise.all([...proxies, ...backends].map((one) => one[Symbol.asyncDispose]()))
      await dir[Symbol.asyncDispose]()
    },
  }
}

interface Stage {
  readonly a: Backend
  readonly proxies: readonly RunningEnvoy[]
  readonly children: Set<Controller>
  readonly isFresh: boolean
}

async function playStory(
  options: FleetChildOptions,
  { a, proxies, children, isFresh }: Stage,
): Promise<FleetStory> {
  const faults: string[] = []
  const start = (killAt: KillAt): Controller => {
    const child = new Controller({ ...options, killAt }, () => {
      if (a.held > 0) faults.push(`idle was said with ${a.held} requests at work`)
    })
    children.add(child)
    return child
  }
  const first = start(options.killAt)
  const traffic = isFresh ? [] : proxies.map(trafficOnceReady)
  await Promise.race([first.ended, first.said('done')])
  const isKilled = !first.has('done')
  if (isKilled && isFresh) await Promise.all(proxies.map((proxy) => proxy.restart()))
  const last = isKilled ? start(0) : first
  await last.said('done')
  const idleAt = first.idleAt ?? last.idleAt
  if (isFresh) traffic.push(...proxies.map(trafficOnceReady))
  await Promise.all(traffic.map((one) => one.served()))
  const late = a.requests.filter((at) => idleAt !== undefined && at > idleAt)
  if (late.length > 0) faults.push(`${late.length} requests came after idle was said`)
  for (const one of traffic) await one[Symbol.asyncDispose]()
  for (const one of traffic) faults.push(...one.errors.map((error) => `a client saw ${error}`))
  const sent = traffic.reduce((sum, one) => sum + one.sent, 0)
  last.write('reset\n')
  await last.said('ready')
  await last.ended
  for (const child of [first, last]) children.delete(child)
  return { at: first.lastPoint, outcomes: last.outcomes, faults, sent, points: first.points }
}

interface SlowTraffic extends AsyncDisposable {
  readonly errors: readonly string[]
  readonly sent: number
  /** Resolves after a good number of requests from now on. */
  served(): Promise<void>
}

/** A proxy that has just started has no endpoints yet: that is no error. */
function trafficOnceReady({ http }: RunningEnvoy): SlowTraffic {
  let isOver = false
  const started = (async () => {
    const isReady = async (): Promise<boolean> =>
      isOver || (await ask(http).catch(() => undefined))?.status === 200
    await until(isReady, 'a proxy that serves', 60_000)
    return startTraffic(http, { clients: 2, pause: 5, paths: ['/', '/', '/', '/hold'] })
  })()
  let errors: readonly string[] = []
  let sent = 0
  return {
    get errors() {
      return errors
    },
    get sent() {
      return sent
    },
    served: async () => {
      const running = await started
      const before = running.sent
      await until(() => running.sent >= before + 50, 'more requests', 30_000)
    },
    [Symbol.asyncDispose]: async () => {
      isOver = true
      const running = await started
      errors = running.errors
      await running[Symbol.asyncDispose]()
      sent = running.sent
    },
  }
}

/** One controller process, by what it says. */
class Controller {
  readonly ended: Promise<void>
  idleAt: number | undefined
  readonly #child: ChildProcess
  readonly #lines: string[] = []
  #errors = ''
  #isOver = false

  constructor(options: FleetChildOptions, onIdle: () => void) {
    const args = ['--import', `${root}scripts/source.mjs`, CHILD, JSON.stringify(options)]
    this.#child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] })
    let rest = ''
    this.#child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        this.#lines.push(line)
        if (line !== 'idle') continue
        this.idleAt ??= performance.now()
        onIdle()
      }
    })
    this.#child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (this.#errors += chunk))
    this.ended = new Promise((resolve) => {
      this.#child.once('close', () => {
        this.#isOver = true
        resolve()
      })
    })
  }

  get points(): number {
    return this.#lines.filter((line) => line.startsWith('point ')).length
  }

  get lastPoint(): string | undefined {
    return this.has('done') ? undefined : this.#lines.findLast((line) => line.startsWith('point '))
  }

  get outcomes(): readonly string[] {
    return this.#lines.filter((line) => line.startsWith('outcome '))
  }

  has(begin: string): boolean {
    return this.#lines.some((line) => line.startsWith(begin))
  }

  async said(begin: string): Promise<void> {
    await until(() => this.has(begin) || this.#isOver, `'${begin}' of the controller`, 90_000)
    const isKilled = this.#child.signalCode === 'SIGKILL'
    if (!this.has(begin) && !isKilled)
      throw new Error(`it ended before '${begin}': ${this.#errors}`)
  }

  write(line: string): void {
    this.#child.stdin?.write(line)
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}
