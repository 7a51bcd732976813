/**
 * From the deletion of a pod to the hold in force: the API server marks it, its slice says so, the controller of the
 * examples drains its server in a real HAProxy.
 *
 *     npm run engines -- haproxy-3.2 kube
 *     npm run bench reconcile/api-change
 */
import { engines } from '../../test/support/engines.ts'
import { until } from '../../test/support/haproxy.ts'
import { KubernetesStage } from '../../test/support/kube-stage/stage.ts'

const PODS = 10
const DELETIONS = 60

async function measure(stage: KubernetesStage): Promise<{ slice: number; hold: number }[]> {
  const { cluster } = stage
  const times: { slice: number; hold: number }[] = []
  await until(() => stage.said.some(({ event }) => event === 'set') || undefined, 'the first set')
  for (let i = 1; i <= DELETIONS; i += 1) {
    const pod = `web-${i}`
    const began = performance.now()
    await cluster.deletePod(pod)
    const slice = cluster.seen(pod, 'FTT').then(() => performance.now() - began)
    const held = async () => /DRAIN|MAINT/.test(await stage.statusOf(pod)) || undefined
    await until(held, `${pod} is held`)
    const hold = performance.now() - began
    times.push({ slice: await slice, hold })
    await cluster.podEnded(pod)
    const next = `web-${PODS + i}`
    await stage.addPod(next, 50 + i)
    await until(async () => (await stage.statusOf(next)) === 'no check' || undefined, next)
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
      '99 %, ms': quantile(all, 0.99),
      'most, ms': quantile(all, 1),
    }
  }
  console.table({ 'the slice says so': row('slice'), 'the hold is in force': row('hold') })
}
