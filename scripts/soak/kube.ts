/** What happens in clusters, by the case: how many requests failed with the controller of the examples, and with a plain loop. */
import { engines } from '../../test/support/engines.ts'
import { until } from '../../test/support/haproxy.ts'
import { request } from '../../test/support/haproxy-traffic.ts'
import { CASES, Scene, type Case } from '../../test/support/kube-stage/cases.ts'
import { startPlainLoop } from '../../test/support/kube-stage/plain-loop.ts'
import { KubernetesStage, type Engines } from '../../test/support/kube-stage/stage.ts'

interface Played {
  readonly total: number
  readonly failed: number
  readonly seconds: number
}

/** Plays the cases with that in their names. @returns whether no request failed with the controller */
export async function soakKube(only: string, say: (line: string) => void): Promise<boolean> {
  const [kube] = engines('kube')
  const haproxy = engines('haproxy', '3.2').at(-1)
  if (kube === undefined || haproxy === undefined) {
    say('needs kube and haproxy-3.2: npm run engines -- haproxy-3.2 kube')
    return false
  }
  let isFine = true
  for (const one of CASES.filter(({ name }) => name.includes(only))) {
    const with_ = await play(one, { kube, haproxy }, true).catch((error: unknown) => String(error))
    const without =
      one.ours === true
        ? undefined
        : await play(one, { kube, haproxy }, false).catch((error: unknown) => String(error))
    say(`${one.name}: ${inWords(with_)}; a plain loop: ${inWords(without)}`)
    isFine &&= typeof with_ !== 'string' && with_.failed === 0
  }
  return isFine
}

function inWords(played: Played | string | undefined): string {
  if (played === undefined) return 'none'
  if (typeof played === 'string') return `NOT PLAYED: ${played}`
  return `${played.failed} of ${played.total} failed in ${played.seconds} s`
}

async function play(one: Case, engines: Engines, isOurs: boolean): Promise<Played> {
  const began = performance.now()
  await using stack = new AsyncDisposableStack()
  const stage = stack.use(await KubernetesStage.open(engines, one.pods))
  const begin = () => stage.startController()
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
  const client = async (): Promise<void> => {
    while (goesOn) {
      const wasExpected = isExpected
      const isOk = await request(stage.haproxy.port('web'), '/').then(
        ({ status }) => status === 200,
        () => false,
      )
      total += 1
      if (!isOk && wasExpected && isExpected) failed += 1
    }
  }
  const clients = Promise.all([client(), client()])
  try {
    await one.play(scene)
  } finally {
    goesOn = false
    await clients
  }
  return { total, failed, seconds: Math.round((performance.now() - began) / 1_000) }
}
