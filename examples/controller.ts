/**
 * A controller that keeps the servers of a HAProxy as the EndpointSlices of a Service and the Nodes say: the loop to
 * copy. It watches, it never takes a list that is not whole for the truth, and it leaves the rest to `reconcile`.
 *
 * The API server and the HAProxy are stand-ins here. With a real one the two informers are those of
 * `@kubernetes/client-node` 2:
 *
 *     const config = new KubeConfig()
 *     config.loadFromDefault()
 *     const slices = config.makeApiClient(DiscoveryV1Api)
 *     const path = '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices'
 *     const labelSelector = 'kubernetes.io/service-name=web'
 *     const list = () => slices.listNamespacedEndpointSlice({ namespace: 'shop', labelSelector })
 *     const makeSlices = () => makeInformer(config, path, list, labelSelector)
 *     const core = config.makeApiClient(CoreV1Api)
 *     const makeNodes = () => makeInformer(config, '/api/v1/nodes', () => core.listNode())
 */
import { EventEmitter, once } from 'node:events'
import { reconcile, select, type Reconciler } from 'drainable'
import { mapEndpoints, markByNodes, mergeSlices, toDesired } from 'drainable/endpoints'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake } from 'drainable/testing/haproxy-runtime'
import { keepInformed, type InformerLike } from './support/informed.ts'

/** Watches slices and nodes, and gives each whole state of both to the reconciler. */
function follow(
  loop: Reconciler,
  makeSlices: () => InformerLike<unknown>,
  makeNodes: () => InformerLike<unknown>,
): AsyncDisposable & { readonly whole: () => Promise<void> } {
  const pushed = new EventEmitter()
  const failed = (error: unknown): void => console.log('the watch ended:', String(error))
  const push = (): void => {
    // A list that is not whole would take out whatever it does not name yet.
    if (!slices.synced || !nodes.synced) return
    const endpoints = markByNodes(mergeSlices(slices.items, { port: 'http' }), nodes.items)
    loop.set(toDesired(mapEndpoints(endpoints), { pool: 'web' }))
    pushed.emit('set')
  }
  const later = (): void => queueMicrotask(push)
  const slices = keepInformed(makeSlices, later, failed)
  const nodes = keepInformed(makeNodes, later, failed)
  return {
    async whole() {
      if (!slices.synced || !nodes.synced) await once(pushed, 'set')
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([slices.stop(), nodes.stop()])
    },
  }
}

/** An API server that knows one kind of object, in place of a real one. */
class StandIn {
  #objects: readonly unknown[]
  #live = new EventEmitter()

  constructor(...objects: readonly unknown[]) {
    this.#objects = objects
  }

  readonly make = (): InformerLike<unknown> => {
    const events = (this.#live = new EventEmitter())
    return {
      on: (event, listener) => void events.on(event, listener),
      start: () => Promise.resolve(),
      stop: () => Promise.resolve(),
      list: () => this.#objects,
    }
  }

  put(...objects: readonly unknown[]): void {
    this.#objects = objects
    this.#live.emit('update', objects[0])
  }

  /** The watch ends with an error; what is put afterwards is seen by the next list. */
  fail(): void {
    this.#live.emit('error', new Error('500: etcdserver: leader changed'))
  }
}

await using haproxy = await startFake({
  pools: {
    web: [
      { name: 'web1', address: '10.0.0.1', port: 8080 },
      { name: 'web2', address: '10.0.0.2', port: 8080 },
    ],
  },
})
await using lb = haproxyRuntime({ socket: haproxy.socket })

function slice(...leaving: readonly string[]): unknown {
  return {
    metadata: { name: 'web-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: ['10.0.0.1', '10.0.0.2'].map((address) => {
      const terminating = leaving.includes(address)
      return {
        addresses: [address],
        nodeName: 'node-1',
        conditions: { ready: !terminating, serving: true, terminating },
      }
    }),
  }
}
const slices = new StandIn(slice())
const nodes = new StandIn({
  metadata: { name: 'node-1' },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
})

await using loop = reconcile(lb, {
  pools: ['web'],
  owns: () => true,
  timeout: '2m',
  settle: '50ms',
})
loop.on('fault', (error) => console.log('fault:', error.message))
const watches = follow(loop, slices.make, nodes.make)

async function show(what: string): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
  await loop.settled()
  const readings = await select(lb, { pool: 'web' })
  const states = readings.map((one) => `${one.ref.member} ${one.present ? one.own : 'gone'}`)
  console.log(`${what}: ${states.join(', ')}`)
}
await show('both pods serve')
slices.put(slice('10.0.0.2'))
await show('the second pod is leaving')
slices.fail()
slices.put()
await show('the watch has failed, and its list is worth nothing')
slices.put(slice())
await watches.whole()
await show('it was begun anew, and both serve')
await watches[Symbol.asyncDispose]()
