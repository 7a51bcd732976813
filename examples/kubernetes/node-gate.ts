/**
 * A gate for maintenance of Nodes behind a balancer that sends to node ports: a Node that is asked to go is drained, and
 * says by a condition of its own when the balancer has no more work on it. Whoever reboots it waits for that:
 *
 *     kubectl taint node n1 drainable.example/leave=:NoSchedule
 *     kubectl wait node n1 --for=condition=DrainableIdle --timeout=10m && reboot n1
 *     kubectl taint node n1 drainable.example/leave-
 *
 *     HAPROXY=10.0.0.2:9999 POOL=nodes NODE_PORT=30080 SELECTOR=pool=web node node-gate.ts
 *
 * The condition is true while this program has the proof, of every balancer. It keeps tickets: started again, it goes on with
 * the Nodes that it holds, and opens those that are not to go any more. `node-gate.yaml` has the rights, for one replica.
 */
import { CoreV1Api, KubeConfig, PatchStrategy, setHeaderOptions } from '@kubernetes/client-node'
import { reconcile, type Reconciler } from 'drainable'
import { mapEndpoints, mapNodes, toDesired } from 'drainable/endpoints'
import { followObjects, kubernetesTickets, spotTaints, type KubeObject } from 'drainable/kubernetes'
import { balancersOf, isSetUp, say, untilAsked } from './support/balancer.ts'

const TAINTS = [
  'drainable.example/leave',
  'ToBeDeletedByClusterAutoscaler',
  'karpenter.sh/disrupted',
  ...spotTaints,
]
const CONDITION = 'DrainableIdle'

interface Node extends KubeObject {
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
}

async function run(env: NodeJS.ProcessEnv): Promise<void> {
  const { POOL: pool = 'nodes', NODE_PORT: port = '30080', SELECTOR: selector = '' } = env
  const { NAMESPACE: namespace = 'drainable' } = env
  const config = new KubeConfig()
  config.loadFromDefault()
  const core = config.makeApiClient(CoreV1Api)
  const signal = untilAsked()

  await using tickets = kubernetesTickets(config, { namespace })
  await using opened = new AsyncDisposableStack()
  const hasLooked = new Set<Reconciler>()
  const loops = balancersOf(env).map(([balancer, lb]) => {
    opened.use(lb)
    const loop = opened.use(
      reconcile(lb, {
        pools: [pool],
        owns: ({ ref }) => ref.member.startsWith('node-'),
        tickets,
        timeout: '10m',
        signal,
      }),
    )
    loop.on('fault', ({ code, message }) => say('fault', { balancer, code, message }))
    loop.on('status', (all) => {
      say('status', { balancer, members: all.map((one) => [one.ref.member, one.phase]) })
      hasLooked.add(loop)
      tell()
    })
    return loop
  })
  await using nodes = followObjects(config, {
    path: '/api/v1/nodes',
    signal,
    changed: (all) => {
      const endpoints = mapNodes(all, { ports: [Number(port)], selector, taints: TAINTS })
      const decisions = mapEndpoints(endpoints)
      const name = ({ endpoint }: { endpoint: { nodeName?: string | null } }): string =>
        `node-${endpoint.nodeName ?? ''}`
      for (const loop of loops) loop.set(toDesired(decisions, { pool, name }))
      tell()
    },
    problem: (error) => say('problem', { message: error?.message ?? 'Nodes can be read again' }),
  })

  /** Whether every balancer has been looked at, and each of those that have it has proved it idle. */
  const isIdle = (member: string): boolean => {
    const servers = loops.flatMap((loop) =>
      loop.status().filter(({ ref }) => ref.member === member),
    )
    const areIdle = servers.length > 0 && servers.every(({ phase }) => phase === 'idle')
    return areIdle && hasLooked.size === loops.length
  }

  /** Makes each Node's condition say what the balancers say, one change after another. */
  let telling = Promise.resolve()
  function tell(): void {
    telling = telling.then(async () => {
      for (const node of nodes.objects as readonly Node[]) {
        const status = isIdle(`node-${node.metadata?.name ?? ''}`) ? 'True' : 'False'
        const said = node.status?.conditions?.find(({ type }) => type === CONDITION)?.status
        if (said !== status && (said !== undefined || status === 'True'))
          await write(core, node, status)
      }
    })
    telling = telling.catch((error: unknown) => say('problem', { message: String(error) }))
  }
  await Promise.all(loops.map((loop) => loop.done))
  await telling
}

async function write(core: CoreV1Api, { metadata }: Node, status: string): Promise<void> {
  const name = metadata?.name ?? ''
  const condition = { type: CONDITION, status, reason: 'Balancer', message: '' }
  await core.patchNodeStatus(
    { name, body: { metadata: { uid: metadata?.uid }, status: { conditions: [condition] } } },
    setHeaderOptions('Content-Type', PatchStrategy.StrategicMergePatch),
  )
  say('condition', { node: name, status })
}

if (isSetUp('HAPROXY, POOL, NODE_PORT and SELECTOR')) await run(process.env)
