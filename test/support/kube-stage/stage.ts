/** A Kubernetes API server, a balancer whose servers are pods, and a controller between them. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Cluster } from '../../../scripts/endpoint-timelines/cluster.ts'
import {
  startControlPlane,
  type ControlPlane,
} from '../../../scripts/endpoint-timelines/control-plane.ts'
import type { Engine } from '../engines.js'
import { startRelay, type Relay } from '../envoy/relay.js'
import { workDir } from '../envoy/proxy.js'
import type { Haproxy } from '../haproxy.js'
import { request, type Backend } from '../haproxy-traffic.js'
import { podNames, type Front } from './front.js'
import { HaproxyFront } from './haproxy-front.js'
import { apply, manifest, tokenOf } from './manifests.js'
import { Program, type Said } from './program.js'

export interface Engines {
  readonly kube: Engine
  readonly haproxy: Engine
}

/** Pods `web-1` and so on, each with a backend of its own on loopback. */
export class KubernetesStage implements AsyncDisposable {
  readonly cluster: Cluster
  readonly front: Front
  readonly plane: ControlPlane
  readonly #stack: AsyncDisposableStack
  readonly #relay: Relay
  readonly #addresses: Map<string, string>
  #isCut = false
  #isFrozen = false
  #programs = 0
  #controller: Program | undefined

  private constructor(parts: {
    readonly cluster: Cluster
    readonly front: Front
    readonly stack: AsyncDisposableStack
    readonly plane: ControlPlane
    readonly relay: Relay
    readonly addresses: Map<string, string>
  }) {
    this.cluster = parts.cluster
    this.front = parts.front
    this.plane = parts.plane
    this.#stack = parts.stack
    this.#relay = parts.relay
    this.#addresses = parts.addresses
  }

  /** So many pods behind a HAProxy, at 10.1.0.1 and so on. */
  static async open({ kube, haproxy }: Engines, count: number): Promise<KubernetesStage> {
    return KubernetesStage.behind(kube, await HaproxyFront.open(haproxy, count))
  }

  /** The pods of a balancer, in a cluster. */
  static async behind(kube: Engine, front: Front): Promise<KubernetesStage> {
    await using stack = new AsyncDisposableStack()
    stack.use(front)
    const plane = stack.use(await startControlPlane(kube.path))
    const cluster = stack.use(await Cluster.open(plane))
    await cluster.addNode('n1', '192.0.2.1')
    const addresses = new Map<string, string>()
    for (const [i, name] of podNames(front.pods.length).entries()) {
      const address = front.addressOf(i + 1)
      addresses.set(name, address)
      await cluster.addPod(name, 'n1', address)
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
    stage = new KubernetesStage({ cluster, front, stack: stack.move(), plane, relay, addresses })
    return stage
  }

  /** The HAProxy of the stage. @throws where it has another balancer */
  get haproxy(): Haproxy {
    if (this.front instanceof HaproxyFront) return this.front.haproxy
    throw new Error('this stage has no HAProxy')
  }

  get pods(): readonly Backend[] {
    return this.front.pods
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

  /** A pod that was not there at the beginning; it serves once its slice says so. */
  async addPod(
    name: string,
    n: number,
    { isReady = true, spec = {}, node = 'n1' } = {},
  ): Promise<Backend> {
    const backend = this.#stack.use(await this.front.startPod(name, n))
    const address = this.front.addressOf(n)
    this.#addresses.set(name, address)
    await this.cluster.addPod(name, node, address, spec)
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

  /** Whether a client is served. */
  async answers(): Promise<boolean> {
    const { status } = await request(this.front.port, '/')
    return status === 200
  }

  /** The status of the server of the nth pod, whatever its name. */
  stateAt(n: number): Promise<string> {
    return this.front.statusAt(this.front.addressOf(n))
  }

  /** Runs the controller of the examples as a user would, with the account of its manifest. */
  async startController(env: Readonly<Record<string, string>> = {}): Promise<Program> {
    const account = { namespace: 'drainable', name: 'drainable' }
    this.#controller = await this.#startProgram(this.front.controller, account, env)
    return this.#controller
  }

  /** Runs a program of `examples/kubernetes` with the rights of an account. */
  start(
    name: string,
    account: Account,
    env: Readonly<Record<string, string>> = {},
  ): Promise<Program> {
    return this.#startProgram(`examples/kubernetes/${name}.ts`, account, env)
  }

  async #startProgram(
    path: string,
    account: Account,
    env: Readonly<Record<string, string>>,
  ): Promise<Program> {
    const token = await tokenOf(this.plane, account.namespace, account.name)
    this.#programs += 1
    const kubeconfig = join(this.#stack.use(await workDir()).path, `kubeconfig-${this.#programs}`)
    writeFileSync(kubeconfig, this.plane.kubeconfig(this.#relay.port, token), { mode: 0o600 })
    const program = new Program(path, {
      KUBECONFIG: kubeconfig,
      ...this.front.env,
      SERVICE: 'shop/web',
      POOL: 'web',
      PORT: 'http',
      ...env,
    })
    return this.#stack.use(program)
  }

  /** Runs the preStop hook of the examples: it has no account. */
  startHook(env: Readonly<Record<string, string>>): Program {
    const path = 'examples/kubernetes/pre-stop.ts'
    return this.#stack.use(new Program(path, { ...this.front.env, ...env }))
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

  /** How the balancer has the server of a pod: see {@link Front.statusOf}. */
  statusOf(pod: string): Promise<string> {
    return this.front.statusOf(pod, this.#addresses.get(pod) ?? '')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

interface Account {
  readonly namespace: string
  readonly name: string
}
