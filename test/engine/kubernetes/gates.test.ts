/** The gates of the examples, with the accounts of their manifests, on a real API server and a real HAProxy. */
import { describe, expect, test } from 'vitest'
import { engines } from '../../support/engines.js'
import { eventually } from '../../support/eventually.js'
import { freePort, Haproxy } from '../../support/haproxy.js'
import { Backend, request } from '../../support/haproxy-traffic.js'
import { apply, manifest, rightsIn } from '../../support/kube-stage/manifests.js'
import { startSocks } from '../../support/kube-stage/socks4.js'
import { KubernetesStage } from '../../support/kube-stage/stage.js'

const haproxy = engines('haproxy', '3.2').at(-1)
const pairs = engines('kube').flatMap((kube) => (haproxy === undefined ? [] : [{ kube, haproxy }]))

const GATE = 'drainable.example/in-rotation'
const LEAVE = 'drainable.example/leave'
const NODE_ACCOUNT = { namespace: 'drainable', name: 'drainable-nodes' }
const NODE_POOL = { POOL: 'nodes', NODE_PORT: '30080' }

describe.each(pairs)('on Kubernetes $kube.version', (pair) => {
  test('a pod passes its readiness gate once the balancer gives it work', async () => {
    await using stage = await KubernetesStage.open(pair, 1)
    const { cluster, plane } = stage
    await apply(plane, manifest('readiness-gate.yaml'))
    const account = { namespace: 'shop', name: 'drainable-gate' }
    const program = await stage.start('readiness-gate', account, { PODS: 'app=web' })
    const spec = { readinessGates: [{ conditionType: GATE }] }
    await stage.addPod('web-2', 9, { isReady: false, spec })
    expect(await stage.statusOf('web-2')).toBe('')
    await cluster.setContainersReady('web-2')
    await eventually(async () => expect(await stage.statusOf('web-2')).toBe('no check'))
    await eventually(() => expect(program.last('in rotation')).toMatchObject({ pod: 'web-2' }))
    // Until the kubelet calls it ready, which may be long after, it stays: another pod's way in shows that it was looked at.
    await stage.addPod('web-3', 10)
    await eventually(async () => expect(await stage.statusOf('web-3')).toBe('no check'))
    expect(await stage.statusOf('web-2')).toBe('no check')
    // What the kubelet does once every gate has passed.
    await cluster.setReady('web-2', true)
    await cluster.seen('web-2', 'TTF')
    expect(await stage.statusOf('web-2')).toBe('no check')
    const used = plane.requestsOf('system:serviceaccount:shop:drainable-gate')
    expect([...used].sort()).toEqual([...rightsIn(manifest('readiness-gate.yaml'))].sort())
    expect(await program.stop()).toBe(0)
  })

  test('a Node that is asked to go says when the balancer has no work on it', async () => {
    await using stage = await KubernetesStage.open(pair, 0)
    const { cluster, plane } = stage
    await apply(plane, manifest('node-gate.yaml'))
    await cluster.addNode('n2', '192.0.2.2')
    const program = await stage.start('node-gate', NODE_ACCOUNT, NODE_POOL)
    await eventually(async () => expect(await stage.nodeStatusOf('n2')).toBe('no check'))
    await cluster.taintNode('n2', LEAVE)
    await eventually(() => expect(program.last('condition')).toMatchObject({ status: 'True' }))
    const { status } = await plane.call('GET', '/api/v1/nodes/n2')
    expect(status).toMatchObject({
      conditions: expect.arrayContaining([
        expect.objectContaining({ type: 'DrainableIdle', status: 'True' }),
      ]) as unknown,
    })
    expect(await stage.nodeStatusOf('n2')).toMatch(/DRAIN|MAINT/)
    await cluster.untaintNode('n2')
    await eventually(() => expect(program.last('condition')).toMatchObject({ status: 'False' }))
    await eventually(async () => expect(await stage.nodeStatusOf('n2')).toBe('no check'))
    expect(await program.stop()).toBe(0) // with its last write
    const used = plane.requestsOf('system:serviceaccount:drainable:drainable-nodes')
    expect([...used].sort()).toEqual([...rightsIn(manifest('node-gate.yaml'))].sort())
  })

  test('a node gate that is started again goes on with what it holds', async () => {
    await using stage = await KubernetesStage.open(pair, 0)
    const { cluster, plane } = stage
    await apply(plane, manifest('node-gate.yaml'))
    await cluster.addNode('n2', '192.0.2.2')
    const start = () => stage.start('node-gate', NODE_ACCOUNT, NODE_POOL)
    const first = await start()
    await cluster.taintNode('n2', LEAVE)
    await eventually(() => expect(first.last('condition')).toMatchObject({ status: 'True' }))
    await first.stop('SIGKILL')
    const second = await start()
    await eventually(() => expect(second.last('condition')).toMatchObject({ status: 'True' }))
    expect(await second.stop()).toBe(0)
    expect(second.last('condition')).toMatchObject({ status: 'False' }) // nobody watches any more
    await cluster.untaintNode('n2')
    const third = await start()
    await eventually(async () => expect(await stage.nodeStatusOf('n2')).toBe('no check'))
    expect(await third.stop()).toBe(0)
  })

  test('a Node with work on one of two balancers is not idle', async () => {
    await using stage = await KubernetesStage.open(pair, 0)
    const { cluster, plane } = stage
    await apply(plane, manifest('node-gate.yaml'))
    await cluster.addNode('n2', '192.0.2.2')
    const port = await freePort()
    await using backend = await Backend.start(port)
    await using socks = await startSocks(() => port)
    await using other = await Haproxy.start({
      engine: pair.haproxy,
      config: (own) => `frontend www
  bind 127.0.0.1:${own('www')}
  default_backend nodes
backend nodes
  default-server socks4 127.0.0.1:${socks.port}
  use-server node-n2 if TRUE
  server node-n1 192.0.2.1:30080
  server node-n2 192.0.2.2:30080`,
    })
    const held = request(other.port('www'), '/hold')
    await eventually(() => expect(backend.active).toBe(1))
    const { HAPROXY, HAPROXY_MASTER } = stage.front.env
    const program = await stage.start('node-gate', NODE_ACCOUNT, {
      ...NODE_POOL,
      HAPROXY: [HAPROXY, other.socket].join(','),
      HAPROXY_MASTER: [HAPROXY_MASTER, other.master].join(','),
    })
    await cluster.taintNode('n2', LEAVE)
    const phases = (said = program.said) => {
      const lines = said.filter(({ event }) => event === 'status')
      const newest = new Map(lines.map(({ balancer, members }) => [balancer, members]))
      return [...newest.values()].flatMap((rows) => (rows as string[][]).map(([, phase]) => phase))
    }
    await eventually(() => expect(phases().sort()).toEqual(['draining', 'idle']))
    backend.release()
    expect((await held).status).toBe(200)
    await eventually(() => expect(program.last('condition')).toMatchObject({ status: 'True' }))
    const at = program.said.findIndex(({ event }) => event === 'condition')
    expect(phases(program.said.slice(0, at))).toEqual(['idle', 'idle'])
  })

  test('a preStop hook ends when nothing is left to wait for', async () => {
    await using stage = await KubernetesStage.open(pair, 2)
    const env = { POD_IP: '10.1.0.1', GRACE_SECONDS: '60' }
    const first = stage.startHook(env)
    expect(await first.ended()).toBe(0)
    expect(first.last('left')).toMatchObject({ member: 'pod-web-1', verifiedIdle: true })
    expect(await stage.statusOf('web-1')).toMatch(/DRAIN|MAINT/)
    const began = performance.now()
    const last = stage.startHook({ ...env, POD_IP: '10.1.0.2', STATEFULSET_POD: 'web-2' })
    expect(await last.ended()).toBe(0)
    expect(last.last('last of its StatefulSet')).toBeDefined()
    expect(performance.now() - began).toBeLessThan(15_000)
    expect(await stage.statusOf('web-2')).toBe('no check')
  })

  test('a preStop hook takes its pod out of every balancer that has it', async () => {
    await using stage = await KubernetesStage.open(pair, 2)
    const others = ['10.1.0.1', '10.1.0.77'].map((address) =>
      Haproxy.start({
        engine: pair.haproxy,
        config: () => `backend web
  server one ${address}:8080
  server two 10.1.0.250:8080`,
      }),
    )
    await using has = await others[0]!
    await using hasNot = await others[1]!
    const list = (own: string | undefined, path: 'socket' | 'master'): string =>
      [own ?? '', has[path], hasNot[path]].join(',')
    const { HAPROXY, HAPROXY_MASTER } = stage.front.env
    const hook = stage.startHook({
      POD_IP: '10.1.0.1',
      GRACE_SECONDS: '60',
      HAPROXY: list(HAPROXY, 'socket'),
      HAPROXY_MASTER: list(HAPROXY_MASTER, 'master'),
    })
    expect(await hook.ended()).toBe(0)
    const left = hook.said.filter(({ event }) => event === 'left')
    const said = left.map(({ pool, member, verifiedIdle }) => [
      `${String(pool)}/${String(member)}`,
      verifiedIdle,
    ])
    expect(said.sort()).toEqual([
      ['api/pod-web-1', true],
      ['web/one', true],
      ['web/pod-web-1', true],
    ])
    expect(await stage.statusOf('web-1')).toMatch(/DRAIN|MAINT/)
    expect(await has.stat('web', 'one', 'status')).toMatch(/DRAIN|MAINT/)
    expect(await hasNot.stat('web', 'one', 'status')).toBe('no check')
  })
})
