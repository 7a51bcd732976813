/** What happens in clusters, by the case: how many requests failed with the controller of the examples, and with a plain loop. */
import { engines } from '../../test/support/engines.ts'
import { until } from '../../test/support/haproxy.ts'
import { request } from '../../test/support/haproxy-traffic.ts'
import { CASES, Scene, type Case } from '../../test/support/kube-stage/cases.ts'
import { EnvoyFront } from '../../test/support/kube-stage/envoy-front.ts'
import type { Front } from '../../test/support/kube-stage/front.ts'
import { HaproxyFront } from '../../test/support/kube-stage/haproxy-front.ts'
import { startPlainLoop } from '../../test/support/kube-stage/plain-loop.ts'
import { KubernetesStage } from '../../test/support/kube-stage/stage.ts'

interface Played {
  readonly total: number
  readonly failed: number
  readonly seconds: number
}

/** Opens a stage with so many pods. */
type Open = (pods: number) => Promise<KubernetesStage>

/**
 * Plays the cases with that in their names, over HAProxy 3.2 and Envoy 1.40.
 *
 * @param only - a part of `haproxy: roll of ten`
 * @returns whether no request failed with the controller
 */
export async function soakKube(only: string, say: (line: string) => void): Promise<boolean> {
  const [kube] = engines('kube')
  const haproxy = engines('haproxy', '3.2').at(-1)
  const envoy = engines('envoy', '1.40').at(-1)
  if (kube === undefined || haproxy === undefined || envoy === undefined) {
    say('needs kube, haproxy-3.2 and envoy-1.40: npm run engines -- haproxy-3.2 envoy-1.40 kube')
    return false
  }
  const fronts: Readonly<Record<string, (pods: number) => Promise<Front>>> = {
    haproxy: (pods) => HaproxyFront.open(haproxy, pods),
    envoy: (pods) => EnvoyFront.open(envoy, pods),
  }
  let isFine = true
  for (const [name, openFront] of Object.entries(fronts)) {
    const open: Open = async (pods) => KubernetesStage.behind(kube, await openFront(pods))
    for (const one of CASES) {
      const title = `${name}: ${one.name}`
      if (!title.includes(only)) continue
      const ours = await play(one, open, true).catch((error: unknown) => String(error))
      const plain =
        one.ours === true
          ? undefined
          : await play(one, open, false).catch((error: unknown) => String(error))
      say(`${title}: ${inWords(ours)}; a plain loop: ${inWords(plain)}`)
      isFine &&= typeof ours !== 'string' && ours.failed === 0
    }
  }
  return isFine
}

function inWords(played: Played | string | undefined): string {
  if (played === undefined) return 'none'
  if (typeof played === 'string') return `NOT PLAYED: ${played}`
  return `${played.failed} of ${played.total} failed in ${played.seconds} s`
}

async function play(one: Case, open: Open, isOurs: boolean): Promise<Played> {
  const began = performance.now()
  await using stack = new AsyncDisposableStack()
  const stage = stack.use(await open(one.pods))
  const { port, apiPort = port } = stage.front
  const isTwo = one.two === true
  if (isTwo) await stage.cluster.addService('api')
  const begin = () => stage.startController(isTwo ? TWO : {})
  if (isOurs) {
    await begin()
    await until(() => stage.said.some(({ event }) => event === 'set') || undefined, 'a set', 30_000)
  } else stack.use(startPlainLoop(stage))
  const scene = new Scene(stage, begin)
  let total = 0
  let failed = 0
  let isExpected = true
  let goesOn = true
  scene.expectOk = (expected) => void (isExpected = expected)
  const client = async (to: number): Promise<void> => {
    while (goesOn) {
      const wasExpected = isExpected
      const isOk = await request(to, '/').then(
        ({ status }) => status === 200,
        () => false,
      )
      total += 1
      if (!isOk && wasExpected && isExpected) failed += 1
    }
  }
  const clients = Promise.all([client(port), client(isTwo ? apiPort : port)])
  try {
    await one.play(scene)
  } finally {
    goesOn = false
    await clients
  }
  return { total, failed, seconds: Math.round((performance.now() - began) / 1_000) }
}

/** The controller's environment for two Services. */
const TWO = { SERVICE: 'shop/web,shop/api', PORT: 'http,http', POOL: 'web,api' }
