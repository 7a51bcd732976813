/** A list of objects that is kept whole. */
import { followObjects, type KubeObject } from 'drainable/kubernetes'
import { expect, it } from 'vitest'
import { eventually } from '../../support/eventually.js'
import { node, NODES } from '../../support/kube-api/objects.js'
import { FakeKube } from '../../support/kube-api/server.js'

function namesOf(objects: readonly KubeObject[] | undefined): readonly string[] | undefined {
  return objects?.map(({ metadata }) => metadata?.name ?? '')
}

it('tells of whole lists, and of what failed until it is well again', async () => {
  await using kube = await FakeKube.start()
  kube.put(NODES, node('n1'))
  kube.put(NODES, node('n2'))
  const lists: (readonly KubeObject[])[] = []
  const problems: (string | undefined)[] = []
  await using nodes = followObjects(kube.config, {
    path: NODES,
    changed: (all) => void lists.push(all),
    problem: (error) => void problems.push(error?.code),
  })
  await eventually(() => expect(namesOf(lists.at(-1))).toEqual(['n1', 'n2']))
  expect(lists[0]).toHaveLength(2)
  await eventually(() => expect(kube.watches).toBe(1))
  const up = await kube.down()
  await eventually(() => expect(problems).toContain('UNREACHABLE'))
  expect(nodes.synced).toBe(false)
  kube.remove(NODES, 'n1')
  await up()
  await eventually(() => expect(namesOf(nodes.objects)).toEqual(['n2']))
  expect(problems.at(-1)).toBeUndefined()
  await nodes.close()
  await eventually(() => expect(kube.connections).toBe(0))
})

it('selects by label or by field', async () => {
  await using kube = await FakeKube.start()
  for (const name of ['a', 'b']) kube.put(NODES, node(name))
  await using one = followObjects(kube.config, {
    path: NODES,
    fieldSelector: 'metadata.name=b',
    changed: () => undefined,
  })
  await eventually(() => expect(namesOf(one.objects)).toEqual(['b']))
})

it.each([{}, { path: 'pods', changed: () => 0 }, { path: '/api/v1/nodes', changed: 1 }])(
  'refuses %j',
  (options) => {
    const config = { getCurrentCluster: () => null, applyToHTTPSOptions: () => Promise.resolve() }
    expect(() => followObjects(config, options as never)).toThrow(/followObjects\(\): /)
  },
)
