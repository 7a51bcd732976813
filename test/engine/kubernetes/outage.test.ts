/** The controller of the examples while its API server is dead, frozen or silent. */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { engines } from '../../support/engines.js'
import { eventually } from '../../support/eventually.js'
import { request } from '../../support/haproxy-traffic.js'
import { traffic } from '../../support/kube-stage/load.js'
import { KubernetesStage } from '../../support/kube-stage/stage.js'

const haproxy = engines('haproxy', '3.2').at(-1)
const pairs = engines('kube').flatMap((kube) => (haproxy === undefined ? [] : [{ kube, haproxy }]))

describe.each(pairs)('while the API server of $kube.version', (pair) => {
  test('is dead for 20 s nothing is lost, and it sees again within 10 s', async () => {
    await using stage = await KubernetesStage.open(pair, 3)
    const { cluster, plane } = stage
    await stage.startController()
    await eventually(() => expect(stage.said.map(({ event }) => event)).toContain('set'))
    const load = traffic(stage.haproxy.port('web'), { gap: 2 })
    await plane.kill()
    await pause(20_000)
    expect(await stage.statusOf('web-1')).toBe('no check')
    await plane.restart()
    const back = performance.now()
    await cluster.watch()
    await cluster.deletePod('web-2')
    await eventually(async () => expect(await stage.statusOf('web-2')).toMatch(/DRAIN|MAINT/))
    expect(performance.now() - back).toBeLessThan(10_000)
    await load[Symbol.asyncDispose]()
    expect(Object.fromEntries(load.statuses)).toEqual({ 200: load.total })
  }, 90_000)

  test('takes calls and never answers, SIGTERM ends it at once', async () => {
    await using stage = await KubernetesStage.open(pair, 1)
    stage.freeze()
    const controller = await stage.startController()
    await eventually(() => expect(stage.taken).toBeGreaterThan(2))
    const began = performance.now()
    expect(await controller.stop()).toBe(0)
    expect(performance.now() - began).toBeLessThan(5_000)
  })

  test('stops answering, SIGTERM ends a leader with a drain under way', async () => {
    await using stage = await KubernetesStage.open(pair, 2)
    const controller = await stage.startController()
    await eventually(async () => expect(await stage.statusOf('web-1')).toBe('no check'))
    await eventually(() => expect(controller.last('leading')).toMatchObject({ leading: true }))
    const answers = stage.pods.map(() => request(stage.haproxy.port('web'), '/hold'))
    await eventually(() => expect(stage.pods.map(({ held }) => held)).toEqual([1, 1]))
    await stage.cluster.deletePod('web-1')
    await eventually(async () => expect(await stage.statusOf('web-1')).toMatch(/DRAIN|MAINT/))
    stage.freeze()
    stage.breakConnections()
    await eventually(() => expect(controller.last('fault')?.['message']).toMatch(/ticket/))
    const began = performance.now()
    expect(await controller.stop()).toBe(0)
    expect(performance.now() - began).toBeLessThan(5_000)
    expect(await stage.statusOf('web-1')).toMatch(/DRAIN|MAINT/)
    for (const pod of stage.pods) pod.release()
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200])
  })
})
