/**
 * From a change in the API to the hold in force: a pod's probe fails, its slice says so, the controller of the examples
 * drains its server in a real HAProxy.
 *
 *     npm run engines -- haproxy-3.2 kube
 *     npm run bench reconcile/api-change
 */
import { engines } from '../../test/support/engines.ts'
import { until } from '../../test/support/haproxy.ts'
import { KubernetesStage } from '../../test/support/kube-stage/stage.ts'

const PODS = 10
const ROUNDS = 4

async function measure(stage: KubernetesStage): Promise<{ slice: number; hold: number }[]> {
  const { cluster } = stage
  const times: { slice: number; hold: number }[] = []
  const holds = async (pod: string, held: boolean): Promise<true | undefined> =>
    /DRAIN|MAINT/.test(await stage.statusOf(pod)) === held ? true : undefined
  await until(() => stage.said.some(({ event }) => event === 'set') || undefined, 'the first set')
  for (let i = 0; i < ROUNDS * PODS; i += 1) {
    const pod = `web-${(i % PODS) + 1}`
    const began = performance.now()
    await cluster.setReady(pod, false)
    const slice = cluster.seen(pod, 'FFF').then(() => performance.now() - began)
    await until(() => holds(pod, true), `${pod} is held`)
    const hold = performance.now() - began
    times.push({ slice: await slice, hold })
    await cluster.setReady(pod, true)
    await until(() => holds(pod, false), `${pod} is ready again`)
  }
  return times
}

function quantile(all: readonly number[], q: number): number {
  const sorted = all.toSorted((a, b) => a - b)
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0)
}

const [kube] = engines('kube')
const haproxy = engines('haproxy', '3.2').at(-1)
if (kube === undefined || haproxy === undefined) {
  console.log('needs kube and haproxy-3.2: npm run engines -- haproxy-3.2 kube')
} else {
  await using stage = await KubernetesStage.open({ kube, haproxy }, PODS)
  await stage.startController()
  const times = await measure(stage)
  const row = (of: 'slice' | 'hold') => {
    const all = times.map((one) => one[of])
    return {
      'half, ms': quantile(all, 0.5),
      '90 %, ms': quantile(all, 0.9),
      'most, ms': quantile(all, 1),
    }
  }
  console.table({ 'the slice says so': row('slice'), 'the hold is in force': row('hold') })
}
