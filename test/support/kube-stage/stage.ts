/** A Kubernetes API server, a HAProxy whose servers are pods, and the controller of the examples between them. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Cluster } from '../../../scripts/endpoint-timelines/cluster.ts'
import { startControlPlane } from '../../../scripts/endpoint-timelines/control-plane.ts'
import type { Engine } from '../engines.js'
import { startRelay, type Relay } from '../envoy/relay.js'
import { Haproxy } from '../haproxy.js'
import { Backend } from '../haproxy-traffic.js'
import { relayCli, type Nets } from './address-relay.js'
import { startSocks } from './socks4.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))

export interface Engines {
  readonly kube: Engine
  readonly haproxy: Engine
}

/** Pods `web-1` and so on at 10.1.0.1 and so on, each with a backend of its own on loopback. */
export class KubernetesStage implements AsyncDisposable {
  readonly cluster: Cluster
  readonly haproxy: Haproxy
  readonly pods: readonly Backend[]
  /** What the controller has said, oldest first. */
  readonly said: Said[] = []
  readonly #stack: AsyncDisposableStack
  readonly #relay: Relay
  readonly #nets: Nets
  #isCut = false
  #controller: ChildProcess | undefined

  private constructor(parts: {
    readonly cluster: Cluster
    readonly haproxy: Haproxy
    readonly pods: readonly Backend[]
    readonly stack: AsyncDisposableStack
    readonly port: number
    readonly relay: Relay
    readonly nets: Nets
  }) {
    this.cluster = parts.cluster
    this.haproxy = parts.haproxy
    this.pods = parts.pods
    this.#stack = parts.stack
    this.#relay = parts.relay
    this.#nets = parts.nets
  }

  static async open({ kube, haproxy: engine }: Engines, count: number): Promise<KubernetesStage> {
    await using stack = new AsyncDisposableStack()
    const plane = stack.use(await startControlPlane(kube.path))
    const cluster = stack.use(await Cluster.open(plane))
    const names = Array.from({ length: count }, (_, i) => `web-${i + 1}`)
    const ports = new Map<string, number>()
    const socks = stack.use(await startSocks((address) => ports.get(address)))
    const haproxy = stack.use(
      await Haproxy.start({
        engine,
        config: (port) => `
frontend f_web
  bind 127.0.0.1:${port('web')}
  default_backend web
backend web
  balance roundrobin
  default-server socks4 127.0.0.1:${socks.port}
${names.map((name, i) => `  server pod-${name} ${addressOf(i)}:8080 # ${port(name)}`).join('\n')}`,
      }),
    )
    const pods: Backend[] = []
    for (const [i, name] of names.entries()) {
      ports.set(addressOf(i), haproxy.port(name))
      pods.push(stack.use(await Backend.start(haproxy.port(name), name)))
    }
    await cluster.addNode('n1', '192.0.2.1')
    for (const [i, name] of names.entries()) {
      await cluster.addPod(name, 'n1', addressOf(i))
      await cluster.setReady(name, true)
      await cluster.seen(name, 'TTF')
    }
    let stage: KubernetesStage | undefined = undefined
    const target = (): number | undefined => (stage?.isCut === true ? undefined : plane.port)
    const relay = stack.use(await startRelay(target))
    writeFileSync(join(haproxy.dir, 'kubeconfig'), plane.kubeconfig(relay.port), { mode: 0o600 })
    const { port } = plane
    const web = haproxy.port('web') // nobody else has it now, so nobody has this net
    const nets = { pods: NET, loopback: `127.${web >> 8}.${web & 255}.` }
    for (const path of [haproxy.socket, haproxy.master])
      stack.use(await relayCli(`${path}.pods`, path, nets))
    stage = new KubernetesStage({ cluster, haproxy, pods, stack: stack.move(), port, relay, nets })
    return stage
  }

  /** Whether the controller can't reach the API server. */
  get isCut(): boolean {
    return this.#isCut
  }

  /** Every connection to the API server ends, and no new one is taken. */
  cut(): void {
    this.#isCut = true
    this.#relay.cut()
  }

  mend(): void {
    this.#isCut = false
  }

  /** A pod that was not there at the beginning, at 10.1.0.n; it serves once its slice says so. */
  async addPod(name: string, n: number): Promise<Backend> {
    const { pods, loopback } = this.#nets
    const backend = this.#stack.use(await Backend.start(8080, name, `${loopback}${n}`))
    await this.cluster.addPod(name, 'n1', `${pods}${n}`)
    await this.cluster.setReady(name, true)
    await this.cluster.seen(name, 'TTF')
    return backend
  }

  /** Runs `examples/controller.ts` as a user would; what it says is kept. */
  startController(): void {
    const { dir, socket, master } = this.haproxy
    const args = ['--import', `${root}scripts/source.mjs`, `${root}examples/controller.ts`]
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        KUBECONFIG: join(dir, 'kubeconfig'),
        HAPROXY_SOCKET: `${socket}.pods`,
        HAPROXY_MASTER: `${master}.pods`,
        SERVICE: 'shop/web',
        TICKETS: join(dir, 'tickets'),
      },
    })
    const keep = (line: string): void => void this.said.push(toSaid(line))
    createInterface(child.stdout).on('line', keep)
    createInterface(child.stderr).on('line', keep)
    this.#controller = child
  }

  /** @returns its status */
  async stopController(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const child = this.#controller
    this.#controller = undefined
    if (child === undefined || child.exitCode !== null) return child?.exitCode ?? null
    const ended = once(child, 'exit')
    child.kill(signal)
    const [status] = (await ended) as [number | null]
    return status
  }

  /** What HAProxy says of each pod's server: `UP`-like words for one that serves; '' for one that is not there. */
  async statusOf(pod: string): Promise<string> {
    return this.haproxy.stat('web', `pod-${pod}`, 'status')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopController('SIGKILL')
    await this.#stack.disposeAsync()
  }
}

/** One line of the controller. */
export interface Said {
  readonly event: string
  readonly [key: string]: unknown
}

function toSaid(line: string): Said {
  try {
    return JSON.parse(line) as Said
  } catch {
    return { event: 'raw', line }
  }
}

const NET = '10.1.0.'

function addressOf(i: number): string {
  return `${NET}${i + 1}`
}
