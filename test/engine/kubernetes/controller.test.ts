/** The controller of the examples, as a program, between a real API server and a real HAProxy. */
import { symlinkSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { engines } from '../../support/engines.js'
import { eventually } from '../../support/eventually.js'
import { Haproxy } from '../../support/haproxy.js'
import { request } from '../../support/haproxy-traffic.js'
import { traffic } from '../../support/kube-stage/load.js'
import { KubernetesStage } from '../../support/kube-stage/stage.js'

const haproxy = engines('haproxy', '3.2').at(-1)
const pairs = engines('kube').flatMap((kube) => (haproxy === undefined ? [] : [{ kube, haproxy }]))

/** Until the controller has given a set of so many endpoints, after what it had said by then. */
async function told(stage: KubernetesStage, endpoints: number, from = 0): Promise<void> {
  await eventually(() => {
    const sets = stage.said.slice(from).filter(({ event }) => event === 'set')
    expect(sets.at(-1)?.['endpoints'], JSON.stringify(stage.said.slice(-5))).toBe(endpoints)
  })
}

/** One request that goes on, on each pod. */
async function heldOnEach({ haproxy, pods }: KubernetesStage) {
  const answers = pods.map(() => request(haproxy.port('web'), '/hold'))
  await eventually(() => expect(pods.map(({ held }) => held)).toEqual(pods.map(() => 1)))
  return {
    /** Lets them end; their statuses. */
    release: async () => {
      for (const pod of pods) pod.release()
      return (await Promise.all(answers)).map(({ status }) => status)
    },
  }
}

describe.each(pairs)('a controller of Kubernetes $kube.version', (pair) => {
  test('drains a pod that leaves, and removes it once it is idle', async () => {
    await using stage = await KubernetesStage.open(pair, 3)
    const { cluster, pods } = stage
    const port = stage.haproxy.port('web')
    const controller = await stage.startController()
    await told(stage, 3)
    const long = await heldOnEach(stage)
    const load = traffic(port)
    try {
      await cluster.deletePod('web-2')
      await eventually(async () => expect(await stage.statusOf('web-2')).toMatch(/DRAIN|MAINT/))
      await cluster.setReady('web-2', false)
      await cluster.podEnded('web-2')
      await cluster.seen('web-2', 'gone')
      await told(stage, 2)
      // It is to go, and works: nothing takes it out.
      await eventually(() => {
        const rows = stage.said.findLast(({ event }) => event === 'status')?.['members']
        expect(rows).toEqual([['pod-web-2', 'draining', 'absent', null]])
      })
      expect(pods[1]?.held).toBe(1)
      expect(await stage.statusOf('web-2')).toMatch(/DRAIN|MAINT/)
      expect(await long.release()).toEqual([200, 200, 200])
      await eventually(async () => expect(await stage.statusOf('web-2')).toBe(''))
    } finally {
      await load[Symbol.asyncDispose]()
    }
    expect([...load.statuses.keys()]).toEqual([200])
    expect(await controller.stop()).toBe(0)
  })

  test('changes nothing while its watch is cut, and catches up after', async () => {
    await using stage = await KubernetesStage.open(pair, 3)
    const { cluster } = stage
    await stage.startController()
    await told(stage, 3)
    stage.cut()
    const problems = (): number => stage.said.filter(({ event }) => event === 'problem').length
    await eventually(() => expect(problems()).toBeGreaterThanOrEqual(3)) // slices, Services, Nodes
    await cluster.deletePod('web-1')
    await cluster.seen('web-1', 'FTT')
    expect(stage.said.findLast(({ event }) => event === 'synced')).toMatchObject({ synced: false })
    expect(await stage.statusOf('web-1')).toBe('no check')
    const from = stage.said.length
    stage.mend()
    await told(stage, 3, from)
    await eventually(async () => expect(await stage.statusOf('web-1')).toMatch(/DRAIN|MAINT/))
    expect(await stage.statusOf('web-2')).toBe('no check')
  })

  test('an empty list from a wrong selector changes nothing', async () => {
    await using stage = await KubernetesStage.open(pair, 2)
    const { cluster } = stage
    await stage.startController()
    await told(stage, 2)
    await cluster.select('nobody')
    await cluster.seen('web-1', 'gone')
    await cluster.seen('web-2', 'gone')
    await told(stage, 0)
    // It has looked with that set in hand, and says why it does nothing.
    await eventually(() => {
      const rows = stage.said.findLast(({ event }) => event === 'status')?.['members']
      const held = expect.stringContaining('nothing is changed without allowEmpty') as string
      expect(rows).toEqual([
        ['pod-web-1', 'active', 'unknown', held],
        ['pod-web-2', 'active', 'unknown', held],
      ])
    })
    expect(await stage.statusOf('web-1')).toBe('no check')
    expect(await stage.statusOf('web-2')).toBe('no check')
    const from = stage.said.length
    await cluster.select('web')
    await told(stage, 2, from)
    await cluster.deletePod('web-2')
    await eventually(async () => expect(await stage.statusOf('web-2')).toMatch(/DRAIN|MAINT/))
    expect(await stage.statusOf('web-1')).toBe('no check')
  })

  test('a pod of a StatefulSet of one serves again at another address', async () => {
    await using stage = await KubernetesStage.open(pair, 1)
    const { cluster, pods } = stage
    const port = stage.haproxy.port('web')
    await stage.startController()
    await told(stage, 1)
    await pods[0]?.[Symbol.asyncDispose]()
    await cluster.deletePod('web-1')
    await cluster.podEnded('web-1')
    await cluster.seen('web-1', 'gone')
    expect((await request(port, '/')).status).toBe(503)
    const back = await stage.addPod('web-1', 9)
    await eventually(async () => expect((await request(port, '/')).status).toBe(200))
    await eventually(async () => expect(await stage.statusOf('web-1')).toBe(''))
    const load = traffic(port)
    await eventually(() => expect(load.statuses.get(200)).toBeGreaterThan(20))
    await load[Symbol.asyncDispose]()
    expect([...load.statuses.keys()]).toEqual([200])
    expect(back.total).toBeGreaterThan(20)
  })

  test('a pod that comes back does not wait for the work of the one before', async () => {
    await using stage = await KubernetesStage.open(pair, 3)
    const { cluster } = stage
    const port = stage.haproxy.port('web')
    await stage.startController()
    await told(stage, 3)
    // Its node is gone: it answers nothing, and its connections do not end.
    const long = await heldOnEach(stage)
    await cluster.deletePod('web-2')
    await cluster.podEnded('web-2')
    await cluster.seen('web-2', 'gone')
    const back = await stage.addPod('web-2', 9)
    await eventually(async () => {
      await request(port, '/')
      expect(back.total).toBeGreaterThan(0)
    })
    // One set can bring the new one and take the old one: both are under way at once.
    await eventually(async () => expect(await stage.statusOf('web-2')).toMatch(/DRAIN|MAINT/))
    expect(await stage.haproxy.stat('web', 'pod-web-2', 'scur')).toBe('1')
    expect(await long.release()).toEqual([200, 200, 200])
    await eventually(async () => expect(await stage.statusOf('web-2')).toBe(''))
  })
  test('goes on with one HAProxy while another one is away', async () => {
    await using stage = await KubernetesStage.open(pair, 2)
    const { cluster } = stage
    await using other = await Haproxy.start({
      engine: pair.haproxy,
      config: () => 'backend web\n  balance roundrobin',
    })
    const away = { socket: `${other.socket}.later`, master: `${other.master}.later` }
    const { HAPROXY, HAPROXY_MASTER } = stage.front.env
    const controller = await stage.startController({
      HAPROXY: [HAPROXY, away.socket].join(','),
      HAPROXY_MASTER: [HAPROXY_MASTER, away.master].join(','),
    })
    await told(stage, 2)
    await stage.addPod('web-3', 9)
    await eventually(async () => expect(await stage.statusOf('web-3')).toBe('no check'))
    await cluster.deletePod('web-1')
    await eventually(async () => expect(await stage.statusOf('web-1')).toMatch(/DRAIN|MAINT/))
    await cluster.podEnded('web-1')
    expect(controller.last('fault')?.['message']).toContain('no such socket')
    symlinkSync(other.socket, away.socket)
    symlinkSync(other.master, away.master)
    for (const pod of ['pod-web-2', 'pod-web-3'])
      await eventually(async () => expect(await other.stat('web', pod, 'status')).toBe('no check'))
    expect(await other.stat('web', 'pod-web-1', 'status')).toBe('')
    await eventually(async () => expect(await stage.statusOf('web-1')).toBe(''))
  })
})
