/** What a kubelet, a scheduler and a deployment would do, done by hand, and what the API server says of it. */
import { setTimeout as pause } from 'node:timers/promises'
import { until, type ControlPlane, type KubeObject, type WatchEvent } from './control-plane.ts'

/** What a watcher of the API server knows at one moment. */
export interface Frame {
  /** Milliseconds since the beginning of the recording. */
  readonly at: number
  /** What was done last, before this was seen. */
  readonly after: string
  readonly slices: readonly KubeObject[]
  readonly nodes: readonly KubeObject[]
}

const NAMESPACE = 'shop'
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`
const SLICES = `/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices`
const NODES = '/api/v1/nodes'

/** One namespace with one Service `web`, and everything that is seen of it. */
export class Cluster implements AsyncDisposable {
  readonly frames: Frame[] = []
  readonly #plane: ControlPlane
  readonly #slices = new Map<string, KubeObject>()
  readonly #nodes = new Map<string, KubeObject>()
  readonly #watches: AsyncDisposable[] = []
  readonly #addresses = new Map<string, string>()
  #began = 0
  #after = ''

  private constructor(plane: ControlPlane) {
    this.#plane = plane
  }

  static async open(plane: ControlPlane): Promise<Cluster> {
    const cluster = new Cluster(plane)
    await plane.call('POST', '/api/v1/namespaces', named('v1', 'Namespace', NAMESPACE))
    await cluster.watch()
    await cluster.addService('web')
    return cluster
  }

  /** A Service of the pods with the label `web`. */
  async addService(name: string): Promise<void> {
    await this.#plane.call('POST', `/api/v1/namespaces/${NAMESPACE}/services`, {
      ...named('v1', 'Service', name),
      spec: { selector: { app: 'web' }, ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
    })
  }

  /** Watches from now on: after a restart of the API server, too. */
  async watch(): Promise<void> {
    for (const watch of this.#watches.splice(0)) await watch[Symbol.asyncDispose]()
    this.#watches.push(
      await this.#plane.watch(SLICES, (event) => this.#see(this.#slices, event)),
      await this.#plane.watch(NODES, (event) => this.#see(this.#nodes, event)),
    )
  }

  /** From here on it is recorded; the first frame is what there is. */
  start(): void {
    this.frames.length = 0
    this.#began = performance.now()
    this.#after = 'the beginning'
    this.#keep()
  }

  /** Says what is about to be done, in the words of the timeline. */
  note(text: string): void {
    this.#after = text
  }

  async addNode(name: string, address: string): Promise<void> {
    await this.#plane.call('POST', NODES, named('v1', 'Node', name))
    await this.#plane.call('PATCH', `${NODES}/${name}/status`, {
      status: {
        addresses: [
          { type: 'InternalIP', address },
          { type: 'Hostname', address: name },
        ],
        conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'ready' }],
      },
    })
    await this.#plane.call('PATCH', `${NODES}/${name}`, { spec: { taints: [] } })
  }

  async taintNode(name: string, key: string): Promise<void> {
    const spec = { unschedulable: true, taints: [{ key, effect: 'NoSchedule' }] }
    await this.#plane.call('PATCH', `${NODES}/${name}`, { spec })
  }

  async untaintNode(name: string): Promise<void> {
    await this.#plane.call('PATCH', `${NODES}/${name}`, {
      spec: { unschedulable: null, taints: [] },
    })
  }

  /** What a kubelet or a tool that drains writes: these conditions, and no other one of the Node. */
  async setConditions(name: string, conditions: Readonly<Record<string, boolean>>): Promise<void> {
    const now = new Date().toISOString()
    const said = Object.entries(conditions).map(([type, holds]) => ({
      ...{ type, status: holds ? 'True' : 'False', reason: 'Recorded', message: '' },
      ...{ lastHeartbeatTime: now, lastTransitionTime: now },
    }))
    const path = `${NODES}/${name}/status`
    await this.#plane.call('MERGE', path, { status: { conditions: said } })
    await until(() => holds(this.#nodes.get(name), conditions), 15_000, `conditions of ${name}`)
  }

  async cordon(name: string): Promise<void> {
    await this.#plane.call('PATCH', `${NODES}/${name}`, { spec: { unschedulable: true } })
  }

  async deleteNode(name: string): Promise<void> {
    await this.#plane.call('DELETE', `${NODES}/${name}`)
  }

  /** What the Service takes for its pods; a wrong one leaves it without any. */
  async select(app: string): Promise<void> {
    const path = `/api/v1/namespaces/${NAMESPACE}/services/web`
    await this.#plane.call('PATCH', path, { spec: { selector: { app } } })
  }

  /** A pod that is bound, running and has its address, and whose probe has not passed yet. */
  async addPod(
    name: string,
    nodeName: string,
    address: string,
    more: Readonly<Record<string, unknown>> = {},
  ): Promise<void> {
    this.#addresses.set(name, address)
    await this.#plane.call('POST', PODS, {
      ...named('v1', 'Pod', name),
      metadata: { name, labels: { app: 'web' } },
      spec: {
        nodeName,
        terminationGracePeriodSeconds: 60,
        ...more,
        containers: [{ name: 'web', image: 'web.example.test/web:1' }],
      },
    })
    await this.setReady(name, false)
  }

  /** What the kubelet writes when the readiness probe says so. */
  async setReady(name: string, ready: boolean): Promise<void> {
    const podIP = this.#addresses.get(name) ?? ''
    const status = ready ? 'True' : 'False'
    await this.#plane.call('PATCH', `${PODS}/${name}/status`, {
      status: {
        phase: 'Running',
        podIP,
        podIPs: [{ ip: podIP }],
        conditions: [
          { type: 'Ready', status },
          { type: 'ContainersReady', status },
        ],
      },
    })
  }

  /** What the kubelet writes when the probes pass, and a readiness gate has not. */
  async setContainersReady(name: string): Promise<void> {
    const conditions = [{ type: 'ContainersReady', status: 'True' }]
    await this.#plane.call('MERGE', `${PODS}/${name}/status`, { status: { conditions } })
  }

  /** Gives a pod another label: whoever selects `web` selects it no more. */
  async label(name: string, app: string): Promise<void> {
    await this.#plane.call('PATCH', `${PODS}/${name}`, { metadata: { labels: { app } } })
  }

  /** Asks a pod to go: its preStop hook would start now. */
  async deletePod(name: string): Promise<void> {
    await this.#plane.call('DELETE', `${PODS}/${name}`)
  }

  /** Asks for it as `kubectl drain` does; the API server deletes the pod. */
  async evictPod(name: string): Promise<void> {
    const eviction = named('policy/v1', 'Eviction', name)
    await this.#plane.call('POST', `${PODS}/${name}/eviction`, eviction)
  }

  /** What the kubelet of a node that shuts down writes of a pod that it has ended: no client deletes it. */
  async podFailed(name: string): Promise<void> {
    const status = { phase: 'Failed', reason: 'Terminated', message: 'node shutdown' }
    await this.#plane.call('PATCH', `${PODS}/${name}/status`, { status })
  }

  /** What the kubelet does once the containers have ended. */
  async podEnded(name: string): Promise<void> {
    await this.#plane.call('DELETE', `${PODS}/${name}`, { gracePeriodSeconds: 0 })
  }

  /** Waits until the slices show the pod like this: `TTF` for ready, serving, terminating; `gone` when they do not show it. */
  async seen(pod: string, conditions: string): Promise<void> {
    const is = (): string => this.#conditionsOf(pod)
    await until(
      () => is() === conditions,
      15_000,
      `slices show ${pod} as ${conditions}, not ${is()}`,
    )
  }

  /** Lets time pass, as a hook or a probe would. */
  async wait(ms: number): Promise<void> {
    await pause(ms)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const watch of this.#watches) await watch[Symbol.asyncDispose]()
  }

  #conditionsOf(pod: string): string {
    const address = this.#addresses.get(pod)
    for (const slice of this.#slices.values()) {
      const endpoints = (slice.endpoints ?? []) as {
        addresses: string[]
        conditions: Record<'ready' | 'serving' | 'terminating', boolean>
      }[]
      const found = endpoints.find(({ addresses }) => addresses[0] === address)
      if (!found) continue
      const { ready, serving, terminating } = found.conditions
      return [ready, serving, terminating].map((one) => (one ? 'T' : 'F')).join('')
    }
    return 'gone'
  }

  #see(known: Map<string, KubeObject>, { type, object }: WatchEvent): void {
    if (type === 'DELETED') known.delete(object.metadata.name)
    else known.set(object.metadata.name, withoutNoise(object))
    this.#keep()
  }

  #keep(): void {
    this.frames.push({
      at: Math.round(performance.now() - this.#began),
      after: this.#after,
      slices: [...this.#slices.values()],
      nodes: [...this.#nodes.values()],
    })
  }
}

function holds(node: KubeObject | undefined, wanted: Readonly<Record<string, boolean>>): boolean {
  const { conditions = [] } = (node?.status ?? {}) as { conditions?: NodeCondition[] }
  const found = new Map(conditions.map(({ type, status }) => [type, status === 'True']))
  return Object.entries(wanted).every(([type, holds]) => found.get(type) === holds)
}

interface NodeCondition {
  readonly type: string
  readonly status: string
}

function named(apiVersion: string, kind: string, name: string): KubeObject {
  return { apiVersion, kind, metadata: { name } }
}

/** Who wrote which field is most of an object and says nothing here. */
function withoutNoise(object: KubeObject): KubeObject {
  const { name, ...rest } = object.metadata
  const said = Object.entries(rest).filter(([key]) => !NOISE.has(key))
  return { ...object, metadata: { name, ...Object.fromEntries(said) } }
}

const NOISE: ReadonlySet<string> = new Set(['managedFields', 'annotations'])
