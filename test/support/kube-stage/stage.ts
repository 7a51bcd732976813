/** A Kubernetes API server, a HAProxy whose servers are pods, and the controller of the examples between them. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Cluster } from '../../../scripts/endpoint-timelines/cluster.ts'
import {
  startControlPlane,
  type ControlPlane,
} from '../../../scripts/endpoint-timelines/control-plane.ts'
import type { Engine } from '../engines.js'
import { startRelay, type Relay } from '../envoy/relay.js'
import { cli, Haproxy } from '../haproxy.js'
import { Backend, request } from '../haproxy-traffic.js'
import { relayCli, type Nets } from './address-relay.js'
import { apply, manifest, tokenOf } from './manifests.js'
import { Program, type Said } from './program.js'
import { startSocks } from './socks4.js'

export interface Engines {
  readonly kube: Engine
  readonly haproxy: Engine
}

/** Pods `web-1` and so on at 10.1.0.1 and so on, each with a backend of its own on loopback. */
export class KubernetesStage implements AsyncDisposable {
  readonly cluster: Cluster
  readonly haproxy: Haproxy
  readonly pods: readonly Backend[]
  readonly plane: ControlPlane
  readonly #stack: AsyncDisposableStack
  readonly #relay: Relay
  readonly #nets: Nets
  #isCut = false
  #isFrozen = false
  #programs = 0
  #controller: Program | undefined

  private constructor(parts: {
    readonly cluster: Cluster
    readonly haproxy: Haproxy
    readonly pods: readonly Backend[]
    readonly stack: AsyncDisposableStack
    readonly plane: ControlPlane
    readonly relay: Relay
    readonly nets: Nets
  }) {
    this.cluster = parts.cluster
    this.haproxy = parts.haproxy
    this.pods = parts.pods
    this.plane = parts.plane
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
${names.map((name, i) => `  server pod-${name} ${addressOf(i)}:8080 # ${port(name)}`).join('\n')}
backend nodes
  balance roundrobin
  server node-n1 192.0.2.1:30080
  server node-n2 192.0.2.2:30080`,
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
    const target = (): number | 'silent' | undefined => {
      if (stage?.isFrozen === true) return 'silent'
      return stage?.isCut === true ? undefined : plane.port
    }
    const relay = stack.use(await startRelay(target))
    await apply(plane, manifest('controller.yaml'))
    const web = haproxy.port('web') // nobody else has it now, so nobody has this net
    const nets = { pods: NET, loopback: `127.${web >> 8}.${web & 255}.` }
    for (const path of [haproxy.socket, haproxy.master])
      stack.use(await relayCli(`${path}.pods`, path, nets))
    stage = new KubernetesStage({ cluster, haproxy, pods, stack: stack.move(), plane, relay, nets })
    return stage
  }

  /** Whether the controller can't reach the API server. */
  get isCut(): boolean {
    return this.#isCut
  }

  get isFrozen(): boolean {
    return this.#isFrozen
  }

  /** Every connection to the API server ends, and no new one is taken. */
  cut(): void {
    this.#isCut = true
    this.#relay.cut()
  }

  mend(): void {
    this.#isCut = false
    this.#isFrozen = false
  }

  /** A pod that was not there at the beginning, at 10.1.0.n; it serves once its slice says so. */
  async addPod(
    name: string,
    n: number,
    { isReady = true, spec = {}, node = 'n1' } = {},
  ): Promise<Backend> {
    const { pods, loopback } = this.#nets
    const backend = this.#stack.use(await Backend.start(8080, name, `${loopback}${n}`))
    await this.cluster.addPod(name, node, `${pods}${n}`, spec)
    if (!isReady) return backend
    await this.cluster.setReady(name, true)
    await this.cluster.seen(name, 'TTF')
    return backend
  }

  /** What the controller has said, oldest first. */
  get said(): readonly Said[] {
    return this.#controller?.said ?? []
  }

  /** The controller that was started last. */
  get controller(): Program | undefined {
    return this.#controller
  }

  async killController(): Promise<void> {
    await this.#controller?.stop('SIGKILL')
  }

  /** Ends every connection to the API server; new ones are taken. */
  breakConnections(): void {
    this.#relay.cut()
  }

  /** Whether a client of HAProxy is served. */
  async answers(): Promise<boolean> {
    const { status } = await request(this.haproxy.port('web'), '/')
    return status === 200
  }

  /** The status of the server at 10.1.0.n that was added at run time. */
  async stateAt(n: number): Promise<string> {
    const rows = (await cli(this.haproxy.socket, 'show servers state web')).split('\n').slice(2)
    const name = rows
      .find((row) => row.split(' ')[4] === `${this.#nets.loopback}${n}`)
      ?.split(' ')[3]
    return name === undefined ? '' : this.haproxy.stat('web', name, 'status')
  }

  /** Runs the controller of the examples as a user would, with the account of its manifest. */
  async startController(env: Readonly<Record<string, string>> = {}): Promise<Program> {
    const account = { namespace: 'drainable', name: 'drainable' }
    this.#controller = await this.start('controller', account, env)
    return this.#controller
  }

  /** Runs a program of `examples/kubernetes` with the rights of an account. */
  async start(
    name: string,
    account: { readonly namespace: string; readonly name: string },
    env: Readonly<Record<string, string>> = {},
  ): Promise<Program> {
    const token = await tokenOf(this.plane, account.namespace, account.name)
    const { dir, socket, master } = this.haproxy
    this.#programs += 1
    const kubeconfig = join(dir, `kubeconfig-${this.#programs}`)
    writeFileSync(kubeconfig, this.plane.kubeconfig(this.#relay.port, token), { mode: 0o600 })
    const program = new Program(`examples/kubernetes/${name}.ts`, {
      KUBECONFIG: kubeconfig,
      HAPROXY: `${socket}.pods`,
      HAPROXY_MASTER: `${master}.pods`,
      SERVICE: 'shop/web',
      POOL: 'web',
      PORT: 'http',
      ...env,
    })
    return this.#stack.use(program)
  }

  /** Runs the preStop hook of the examples: it has no account. */
  startHook(env: Readonly<Record<string, string>>): Program {
    const { socket, master } = this.haproxy
    const sockets = { HAPROXY: `${socket}.pods`, HAPROXY_MASTER: `${master}.pods` }
    return this.#stack.use(new Program('examples/kubernetes/pre-stop.ts', { ...sockets, ...env }))
  }

  /** From now on the API server takes connections and says nothing. */
  freeze(): void {
    this.#isFrozen = true
  }

  /** How many connections were taken by a frozen one. */
  get taken(): number {
    return this.#relay.taken
  }

  async nodeStatusOf(node: string): Promise<string> {
    return this.haproxy.stat('nodes', `node-${node}`, 'status')
  }

  /** What HAProxy says of each pod's server: `UP`-like words for one that serves; '' for one that is not there. */
  async statusOf(pod: string): Promise<string> {
    return this.haproxy.stat('web', `pod-${pod}`, 'status')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

const NET = '10.1.0.'

function addressOf(i: number): string {
  return `${NET}${i + 1}`
}
