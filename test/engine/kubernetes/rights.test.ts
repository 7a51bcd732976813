/** The manifests of the examples give every right that is used, and no other, on a real API server with RBAC. */
import { describe, expect, test } from 'vitest'
import { engines } from '../../support/engines.js'
import { eventually } from '../../support/eventually.js'
import { apply, manifest, rightsIn } from '../../support/kube-stage/manifests.js'
import { KubernetesStage } from '../../support/kube-stage/stage.js'

const haproxy = engines('haproxy', '3.2').at(-1)
const pairs = engines('kube').flatMap((kube) => (haproxy === undefined ? [] : [{ kube, haproxy }]))

describe.each(pairs)('on Kubernetes $kube.version', (pair) => {
  test('the controller uses each right of its manifest, and needs no other', async () => {
    await using stage = await KubernetesStage.open(pair, 2)
    const { cluster, plane } = stage
    const controller = await stage.startController()
    await eventually(() => expect(controller.last('set')).toBeDefined())
    await cluster.deletePod('web-2')
    await cluster.podEnded('web-2')
    await eventually(async () => expect(await stage.statusOf('web-2')).toBe(''))
    expect(await controller.stop()).toBe(0)
    const used = plane.requestsOf('system:serviceaccount:drainable:drainable')
    expect([...used].sort()).toEqual([...rightsIn(manifest('controller.yaml'))].sort())
  })

  test('a controller without the right to Nodes works, and names the rule', async () => {
    await using stage = await KubernetesStage.open(pair, 2)
    const { cluster, plane } = stage
    const path = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/drainable-nodes'
    await plane.call('DELETE', path)
    const controller = await stage.startController()
    await eventually(() => expect(controller.last('set')).toBeDefined())
    await cluster.deletePod('web-2')
    await eventually(async () => expect(await stage.statusOf('web-2')).toMatch(/DRAIN|MAINT/))
    const problems = controller.said.filter(({ event }) => event === 'problem')
    expect(problems).toHaveLength(1)
    expect(problems[0]?.['message']).toMatch(
      /list Nodes: 403 Forbidden: nodes is forbidden.*ClusterRole/,
    )
    expect(String(problems[0]?.['message']).length).toBeLessThan(600)
  })

  test('a Service whose selector is emptied is named', async () => {
    await using stage = await KubernetesStage.open(pair, 1)
    const controller = await stage.startController()
    await eventually(() => expect(controller.last('set')).toBeDefined())
    await stage.plane.call('PATCH', '/api/v1/namespaces/shop/services/web', {
      spec: { selector: null },
    })
    await eventually(() =>
      expect(controller.last('problem')?.['message']).toMatch(/Service shop\/web has no selector/),
    )
  })

  test.each(['pre-stop.yaml', 'readiness-gate.yaml', 'node-gate.yaml'])(
    'the API server takes %s',
    async (name) => {
      await using stage = await KubernetesStage.open(pair, 0)
      await apply(stage.plane, manifest(name))
    },
  )
})
