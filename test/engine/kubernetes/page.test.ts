/** The steps of docs/kubernetes.md as a new user takes them: its HAProxy, its manifest, its hook, and a roll. */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { engines } from '../../support/engines.js'
import { eventually } from '../../support/eventually.js'
import { traffic } from '../../support/kube-stage/load.js'
import { HOOK_SECONDS, PageFront } from '../../support/kube-stage/page-front.js'
import { KubernetesStage } from '../../support/kube-stage/stage.js'

const haproxy = engines('haproxy', '3.2').at(-1)
const pairs = engines('kube').flatMap((kube) => (haproxy === undefined ? [] : [{ kube, haproxy }]))

describe.each(pairs)('by the page alone, on Kubernetes $kube.version', (pair) => {
  test('a rolling update loses no request', async () => {
    await using stage = await KubernetesStage.behind(
      pair.kube,
      await PageFront.open(pair.haproxy, 2),
    )
    const { cluster, pods } = stage
    const controller = await stage.startController(stage.front.env)
    await eventually(() => expect(controller.last('leading')).toMatchObject({ leading: true }))
    await eventually(() => expect(controller.last('set')).toMatchObject({ endpoints: 2 }))
    for (const pod of ['web-1', 'web-2'])
      await eventually(async () => expect(await stage.statusOf(pod)).toBe('no check'))
    const load = traffic(stage.front.port)
    for (const n of [1, 2]) {
      await stage.addPod(`web-new-${n}`, 100 + n)
      await cluster.deletePod(`web-${n}`)
      await pause(HOOK_SECONDS * 1_000)
      await pods[n - 1]?.[Symbol.asyncDispose]()
      await cluster.podEnded(`web-${n}`)
      await eventually(async () => expect(await stage.statusOf(`web-${n}`)).toBe(''))
    }
    await load[Symbol.asyncDispose]()
    expect(Object.fromEntries(load.statuses)).toEqual({ 200: load.total })
    expect(load.total).toBeGreaterThan(200)
    expect(JSON.stringify(controller.said)).toContain('["pod-web-1","draining","absent",null]')
    expect(controller.said.filter(({ event }) => event === 'fault' || event === 'problem')).toEqual(
      [],
    )
    expect(await controller.stop()).toBe(0)
  })

  test('servers come back by themselves after a reload', async () => {
    const front = await PageFront.open(pair.haproxy, 2)
    await using stage = await KubernetesStage.behind(pair.kube, front)
    const controller = await stage.startController(front.env)
    await eventually(() => expect(controller.last('set')).toMatchObject({ endpoints: 2 }))
    await eventually(async () => expect(await stage.answers()).toBe(true))
    front.reload()
    await eventually(async () => expect(await stage.answers()).toBe(false))
    await eventually(async () => expect(await stage.answers()).toBe(true))
    for (const pod of ['web-1', 'web-2'])
      await eventually(async () => expect(await stage.statusOf(pod)).toBe('no check'))
  })
})
