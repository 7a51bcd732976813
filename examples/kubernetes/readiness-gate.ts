/**
 * The controller with a readiness gate: a new pod counts as ready only once the balancer gives it work, so that a rolling
 * update does not take an old pod before the new one is in rotation. Pods ask for it:
 *
 *     spec: { readinessGates: [{ conditionType: drainable.example/in-rotation }] }
 *
 * A pod that waits for its gate alone is not ready in its EndpointSlice. So the controller reads Pods, too, and takes
 * such a pod for ready. `readiness-gate.yaml` has the rights beside those of controller.yaml.
 */
import { CoreV1Api, KubeConfig, PatchStrategy, setHeaderOptions } from '@kubernetes/client-node'
import { reconcile, select } from 'drainable'
import { followObjects, followService, type KubeObject } from 'drainable/kubernetes'
import { balancerOf, isSetUp, say, untilAsked } from './support/balancer.ts'

const GATE = 'drainable.example/in-rotation'

interface Pod extends KubeObject {
  readonly spec?: { readonly readinessGates?: readonly { readonly conditionType: string }[] }
  readonly status?: {
    readonly podIP?: string
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
}

function holds(pod: Pod, type: string): boolean {
  return pod.status?.conditions?.some((one) => one.type === type && one.status === 'True') === true
}

/**
 * Whether a pod is ready, whatever this gate says of it. So it stays in rotation after its gate is passed, too, until
 * the kubelet calls it ready and its EndpointSlice says so.
 */
function isReadyButForGate(pod: Pod): boolean {
  const gates = (pod.spec?.readinessGates ?? []).map(({ conditionType }) => conditionType)
  const isLeaving = Object.hasOwn(pod.metadata ?? {}, 'deletionTimestamp')
  if (isLeaving || !gates.includes(GATE)) return false
  return gates.every((gate) => gate === GATE || holds(pod, gate)) && holds(pod, 'ContainersReady')
}

async function run(env: NodeJS.ProcessEnv): Promise<void> {
  const [namespace = '', service = ''] = (env['SERVICE'] ?? 'default/web').split('/')
  const { POOL: pool = service, PORT: port = 'http', PODS: labelSelector } = env
  const config = new KubeConfig()
  config.loadFromDefault()
  const core = config.makeApiClient(CoreV1Api)
  const signal = untilAsked()
  const ready = new Map<string, Pod>() // by address: ready but for this gate

  await using lb = balancerOf(env)
  const owns = ({ ref }: { ref: { member: string } }) => ref.member.startsWith('pod-')
  await using loop = reconcile(lb, { pools: [pool], owns, timeout: '2m', signal })
  loop.on('fault', ({ code, message }) => say('fault', { code, message }))
  await using follower = followService(
    loop,
    config,
    { namespace, service, port, pool },
    {
      signal,
      adjust: (endpoints) =>
        endpoints.map((one) =>
          ready.has(one.addresses[0] ?? '') && one.conditions?.terminating !== true
            ? { ...one, conditions: { ready: true } }
            : one,
        ),
    },
  )
  follower.on('problem', ({ code, message }) => say('problem', { code, message }))

  /** Opens the gate of each pod to which the balancer gives work. */
  const open = async (): Promise<void> => {
    await loop.settled({ signal })
    for (const [address, pod] of ready) {
      if (holds(pod, GATE)) continue
      const found = await select(lb, { address }, { signal })
      const inRotation = found.some((one) => one.present && one.ref.pool === pool && one.serves)
      if (inRotation) await pass(core, namespace, pod)
    }
  }
  let opening = Promise.resolve()
  const look = (): void => {
    opening = opening.then(open).catch((error: unknown) => {
      if (!signal.aborted) say('problem', { message: String(error) })
    })
  }
  follower.on('set', look)
  await using pods = followObjects(config, {
    path: `/api/v1/namespaces/${namespace}/pods`,
    labelSelector,
    signal,
    changed: (all) => {
      ready.clear()
      for (const pod of all as readonly Pod[])
        if (isReadyButForGate(pod)) ready.set(pod.status?.podIP ?? '', pod)
      follower.refresh()
    },
    problem: (error) => say('problem', { message: error?.message ?? 'pods can be read again' }),
  })
  await loop.done
  await pods.close()
  await opening
}

async function pass(core: CoreV1Api, namespace: string, { metadata }: Pod): Promise<void> {
  const name = metadata?.name ?? ''
  const condition = { type: GATE, status: 'True', reason: 'InRotation', message: '' }
  await core.patchNamespacedPodStatus(
    // The uid: of a pod that was made anew under this name the patch is refused.
    {
      name,
      namespace,
      body: { metadata: { uid: metadata?.uid }, status: { conditions: [condition] } },
    },
    setHeaderOptions('Content-Type', PatchStrategy.StrategicMergePatch),
  )
  say('in rotation', { pod: name })
}

if (isSetUp('HAPROXY, SERVICE, PORT, POOL and PODS')) await run(process.env)
