/**
 * How long a controller is blind once a dead API server is back: until it has every list and watch again, and until a pod
 * that is deleted at once is held. The slice itself needs its own controller, which starts anew with the API server.
 *
 *     npm run engines -- haproxy-3.2 kube
 *     npm run bench kubernetes/outage
 *
 * Ends with status 1 where any hold takes more than ten seconds.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { engines } from '../../test/support/engines.ts'
import { until } from '../../test/support/haproxy.ts'
import { KubernetesStage } from '../../test/support/kube-stage/stage.ts'

/** How long the API server is dead each time, in milliseconds: retries are then a half of 5 s to 5 s apart. */
const OUTAGES = [1_000, 5_000, 10_000, 15_000, 20_000, 20_000, 20_000, 30_000, 40_000, 60_000]
const MOST = 10_000

interface Times {
  readonly synced: number
  readonly slice: number
  readonly hold: number
}

async function outlive(stage: KubernetesStage, ms: number, pod: string): Promise<Times> {
  const { cluster, plane } = stage
  await plane.kill()
  await pause(ms)
  const from = stage.said.length
  await plane.restart()
  const back = performance.now()
  const isSynced = () =>
    stage.said.slice(from).some((one) => one.event === 'synced' && one['synced'] === true) ||
    undefined
  const synced = until(isSynced, 'it is synced', 3 * MOST).then(() => performance.now() - back)
  await cluster.watch()
  await cluster.deletePod(pod)
  const slice = cluster.seen(pod, 'FTT').then(() => performance.now() - back)
  const held = async () => /DRAIN|MAINT/.test(await stage.statusOf(pod)) || undefined
  await until(held, `${pod} is held`, 3 * MOST)
  const hold = performance.now() - back
  await cluster.podEnded(pod)
  return { synced: await synced, slice: await slice, hold }
}

const [kube] = engines('kube')
const haproxy = engines('haproxy', '3.2').at(-1)
if (kube === undefined || haproxy === undefined) {
  console.log('needs kube and haproxy-3.2: npm run engines -- haproxy-3.2 kube')
} else {
  await using stage = await KubernetesStage.open({ kube, haproxy }, OUTAGES.length + 2)
  await stage.startController()
  await until(() => stage.said.some(({ event }) => event === 'set') || undefined, 'the first set')
  const rows: object[] = []
  for (const [i, ms] of OUTAGES.entries()) {
    const { synced, slice, hold } = await outlive(stage, ms, `web-${i + 1}`)
    rows.push({
      'dead for, s': ms / 1_000,
      'it is synced, ms': Math.round(synced),
      'the slice says so, ms': Math.round(slice),
      'the hold is in force, ms': Math.round(hold),
    })
    if (hold > MOST) process.exitCode = 1
  }
  console.table(rows)
}
