/** Rolling updates between a real API server and a real HAProxy, under load. */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { engines } from '../../support/engines.js'
import { eventually } from '../../support/eventually.js'
import { traffic } from '../../support/kube-stage/load.js'
import { KubernetesStage } from '../../support/kube-stage/stage.js'

const haproxy = engines('haproxy', '3.2').at(-1)
const pairs = engines('kube').flatMap((kube) => (haproxy === undefined ? [] : [{ kube, haproxy }]))

/** How long a pod serves after its deletion, as `preStop: { sleep: { seconds: 3 } }` makes it. */
const PRE_STOP = 3_000

describe.each(pairs)('a rolling update on Kubernetes $kube.version', (pair) => {
  test('of ten pods loses no request', async () => {
    await using stage = await KubernetesStage.open(pair, 10)
    const { cluster, pods } = stage
    await stage.startController()
    await eventually(() => expect(stage.said.map(({ event }) => event)).toContain('set'))
    const load = traffic(stage.haproxy.port('web'), { clients: 4 })
    for (let i = 1; i <= 10; i += 1) {
      const next = await stage.addPod(`web-new-${i}`, 100 + i)
      await eventually(() => expect(next.total).toBeGreaterThan(0))
      await cluster.deletePod(`web-${i}`)
      await pause(PRE_STOP)
      await pods[i - 1]?.[Symbol.asyncDispose]()
      await cluster.podEnded(`web-${i}`)
    }
    await eventually(async () => {
      for (let i = 1; i <= 10; i += 1) expect(await stage.statusOf(`web-${i}`)).toBe('')
    })
    await load[Symbol.asyncDispose]()
    expect(Object.fromEntries(load.statuses)).toEqual({ 200: load.total })
    expect(load.total).toBeGreaterThan(200)
  })
})
