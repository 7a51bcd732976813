/** What is recorded: each is a story that a controller meets, told to a real API server. */
import type { Cluster } from './cluster.ts'

export interface Scenario {
  readonly name: string
  readonly title: string
  /** What there is before the recording begins. */
  prepare(cluster: Cluster): Promise<void>
  run(cluster: Cluster): Promise<void>
}

export const scenarios: readonly Scenario[] = [
  {
    name: 'rolling-update-slow-prestop',
    title: 'Rolling update of two replicas with a slow preStop hook',
    prepare: (cluster) => readyPods(cluster, ['old-1', 'old-2']),
    run: async (cluster) => {
      await addPod(cluster, 'new-1', 'n1', '10.1.0.11')
      await terminate(cluster, 'old-1')
      await becomeReady(cluster, 'new-1')
      await addPod(cluster, 'new-2', 'n2', '10.1.0.12')
      await terminate(cluster, 'old-2')
      await becomeReady(cluster, 'new-2')
      await cluster.wait(400)
      await stop(cluster, 'old-1')
      await stop(cluster, 'old-2')
    },
  },
  {
    name: 'single-replica',
    title: 'The only replica is replaced: the old one serves on in its preStop hook',
    prepare: (cluster) => readyPods(cluster, ['old-1']),
    run: async (cluster) => {
      await terminate(cluster, 'old-1')
      await addPod(cluster, 'new-1', 'n2', '10.1.0.11')
      await cluster.wait(400)
      await becomeReady(cluster, 'new-1')
      await stop(cluster, 'old-1')
    },
  },
  {
    name: 'readiness-flap',
    title: 'A readiness probe fails for a while, then all of them do',
    prepare: (cluster) => readyPods(cluster, ['web-1', 'web-2', 'web-3']),
    run: async (cluster) => {
      await flap(cluster, ['web-2'])
      await flap(cluster, ['web-1', 'web-2', 'web-3'])
    },
  },
  {
    name: 'node-deletion',
    title: 'A node is marked, cordoned and deleted: its endpoints vanish without terminating',
    prepare: (cluster) => readyPods(cluster, ['web-1', 'web-2', 'web-3', 'web-4']),
    run: async (cluster) => {
      cluster.note('node n2 gets the taint karpenter.sh/disrupted and is cordoned')
      await cluster.taintNode('n2', 'karpenter.sh/disrupted')
      await cluster.wait(400)
      cluster.note('the Node object n2 is deleted')
      await cluster.deleteNode('n2')
      await cluster.seen('web-2', 'gone')
      await cluster.seen('web-4', 'gone')
      await addPod(cluster, 'web-5', 'n1', '10.1.0.5')
      await becomeReady(cluster, 'web-5')
    },
  },
  {
    name: 'node-drain',
    title: 'A node is drained for maintenance, and says so in its conditions (Kubernetes 1.37)',
    prepare: (cluster) => readyPods(cluster, ['web-1', 'web-2', 'web-3']),
    run: async (cluster) => {
      cluster.note('node n2: MaintenancePlanned')
      await cluster.setConditions('n2', { MaintenancePlanned: true })
      await cluster.wait(400)
      cluster.note('node n2: DrainInProgress')
      await cluster.setConditions('n2', { DrainInProgress: true })
      await cluster.wait(400)
      cluster.note('node n2 is cordoned, and pod web-2 evicted; its preStop hook runs')
      await cluster.cordon('n2')
      await cluster.evictPod('web-2')
      await cluster.seen('web-2', 'FTT')
      await stop(cluster, 'web-2')
      cluster.note('node n2: Drained')
      await cluster.setConditions('n2', { DrainInProgress: false, Drained: true })
      cluster.note('node n2: MaintenanceInProgress')
      await cluster.setConditions('n2', { MaintenancePlanned: false, MaintenanceInProgress: true })
    },
  },
  {
    name: 'node-shutdown',
    title: 'A node shuts down in order: it is not Ready, and its pods answer (Kubernetes 1.37)',
    prepare: (cluster) => readyPods(cluster, ['web-1', 'web-2', 'web-3']),
    run: async (cluster) => {
      cluster.note('node n2: GracefulNodeShutdownInProgress, and not Ready')
      await cluster.setConditions('n2', { GracefulNodeShutdownInProgress: true, Ready: false })
      await cluster.wait(400)
      cluster.note('the kubelet of n2 has ended web-2')
      await cluster.podFailed('web-2')
      await cluster.seen('web-2', 'gone')
    },
  },
]

/** Two nodes, and pods on them in turn. */
async function readyPods(cluster: Cluster, names: readonly string[]): Promise<void> {
  await cluster.addNode('n1', '192.0.2.1')
  await cluster.addNode('n2', '192.0.2.2')
  for (const [i, name] of names.entries()) {
    await cluster.addPod(name, i % 2 === 0 ? 'n1' : 'n2', `10.1.0.${i + 1}`)
    await cluster.setReady(name, true)
    await cluster.seen(name, 'TTF')
  }
}

async function addPod(cluster: Cluster, pod: string, node: string, address: string): Promise<void> {
  cluster.note(`pod ${pod} is started on ${node}`)
  await cluster.addPod(pod, node, address)
  await cluster.seen(pod, 'FFF')
}

async function becomeReady(cluster: Cluster, pod: string): Promise<void> {
  cluster.note(`the probe of ${pod} passes`)
  await cluster.setReady(pod, true)
  await cluster.seen(pod, 'TTF')
}

async function terminate(cluster: Cluster, pod: string): Promise<void> {
  cluster.note(`pod ${pod} is deleted; its preStop hook runs`)
  await cluster.deletePod(pod)
  await cluster.seen(pod, 'FTT')
}

async function stop(cluster: Cluster, pod: string): Promise<void> {
  cluster.note(`${pod} gets SIGTERM; its probe fails while it finishes requests`)
  await cluster.setReady(pod, false)
  await cluster.seen(pod, 'FFT')
  cluster.note(`${pod} has ended`)
  await cluster.podEnded(pod)
  await cluster.seen(pod, 'gone')
}

async function flap(cluster: Cluster, pods: readonly string[]): Promise<void> {
  for (const pod of pods) {
    cluster.note(`the probe of ${pod} fails`)
    await cluster.setReady(pod, false)
    await cluster.seen(pod, 'FFF')
  }
  await cluster.wait(400)
  for (const pod of pods) await becomeReady(cluster, pod)
}
