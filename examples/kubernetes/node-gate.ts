/**
 * A gate for maintenance of Nodes behind a balancer that sends to node ports: a Node that is asked to go is drained, and
 * says by a condition of its own when the balancer has no more work on it. Whoever reboots it waits for that:
 *
 *     kubectl taint node n1 drainable.example/leave=:NoSchedule
 *     kubectl wait node n1 --for=condition=DrainableIdle --timeout=10m && reboot n1
 *     kubectl taint node n1 drainable.example/leave-
 *
 *     HAPROXY=10.0.0.2:9999 POOL=nodes NODE_PORT=30080 SELECTOR=pool=web node node-gate.ts
 */
import { CoreV1Api, KubeConfig, PatchStrategy, setHeaderOptions } from '@kubernetes/client-node'
import { reconcile } from 'drainable'
import { mapEndpoints, mapNodes, toDesired } from 'drainable/endpoints'
import { followObjects, spotTaints, type KubeObject } from 'drainable/kubernetes'
import { balancerOf, isSetUp, say, untilAsked } from './support/balancer.ts'

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
  const config = new KubeConfig()
  config.loadFromDefault()
  const core = config.makeApiClient(CoreV1Api)
  const signal = untilAsked()

  await using lb = balancerOf(env)
  await using loop = reconcile(lb, {
    pools: [pool],
    owns: ({ ref }) => ref.member.startsWith('node-'),
    timeout: '10m',
    signal,
  })
  loop.on('fault', ({ code, message }) => say('fault', { code, message }))
  loop.on('status', () => tell())
  await using nodes = followObjects(config, {
    path: '/api/v1/nodes',
    signal,
    changed: (all) => {
      const endpoints = mapNodes(all, { ports: [Number(port)], selector, taints: TAINTS })
      const decisions = mapEndpoints(endpoints)
      const name = ({ endpoint }: { endpoint: { nodeName?: string | null } }): string =>
        `node-${endpoint.nodeName ?? ''}`
      loop.set(toDesired(decisions, { pool, name }))
      tell()
    },
    problem: (error) => say('problem', { message: error?.message ?? 'Nodes can be read again' }),
  })

  /** Makes each Node's condition say what the balancer says, one change after another. */
  let telling = Promise.resolve()
  function tell(): void {
    telling = telling.then(async () => {
      const idle = new Set(
        loop.status().flatMap(({ ref, phase }) => (phase === 'idle' ? [ref.member] : [])),
      )
      for (const node of nodes.objects as readonly Node[]) {
        const status = idle.has(`node-${node.metadata?.name ?? ''}`) ? 'True' : 'False'
        const said = node.status?.conditions?.find(({ type }) => type === CONDITION)?.status
        if (said !== status && (said !== undefined || status === 'True'))
          await write(core, node, status)
      }
    })
    telling = telling.catch((error: unknown) => say('problem', { message: String(error) }))
  }
  await loop.done
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
