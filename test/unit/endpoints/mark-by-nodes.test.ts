import {
  mapEndpoints,
  markByNodes,
  type EndpointInput,
  type Node,
  type NodeEnd,
} from 'drainable/endpoints'
import { expect, test } from 'vitest'

const nodes: Node[] = [
  {
    metadata: {
      name: 'stays',
      labels: { 'node.kubernetes.io/exclude-from-external-load-balancers': '' },
    },
  },
  { metadata: { name: 'tainted' }, spec: { taints: [{ key: 'karpenter.sh/disrupted' }] } },
  {
    metadata: { name: 'draining' },
    status: { conditions: [{ type: 'DrainInProgress', status: 'True' }] },
  },
  {
    metadata: { name: 'planned' },
    status: { conditions: [{ type: 'MaintenancePlanned', status: 'True' }] },
  },
  { metadata: { name: 'cordoned' }, spec: { unschedulable: true } },
  { metadata: { name: 'deleting', deletionTimestamp: new Date(0) } },
]

function on(nodeName: string | null, more: Partial<EndpointInput> = {}): EndpointInput {
  return { addresses: ['10.0.0.1'], nodeName, ...more }
}

function marked(endpoint: EndpointInput, options: NodeEnd = {}): string {
  const [one] = markByNodes([endpoint], nodes, options)
  return [one?.intent ?? 'none', one?.note ?? ''].join(' ').trim()
}

test('endpoints on a leaving or gone node get a soft intent', () => {
  expect(marked(on('stays'))).toBe('none')
  expect(marked(on('tainted'))).toBe('soft node tainted: taint karpenter.sh/disrupted')
  expect(marked(on('deleting'))).toBe('soft node deleting: the node is being deleted')
  expect(marked(on('draining'))).toBe('soft node draining: condition DrainInProgress')
  expect(marked(on('draining'), { conditions: [] })).toBe('none')
  expect(marked(on('planned'))).toBe('none')
  expect(marked(on('planned'), { conditions: ['MaintenancePlanned'] })).toBe(
    'soft node planned: condition MaintenancePlanned',
  )
  expect(marked(on('unheard-of'))).toBe('soft node unheard-of: deleted')
  expect(marked(on('cordoned'))).toBe('none')
  expect(marked(on('cordoned'), { cordon: 'drain' })).toBe('soft node cordoned: cordoned')
  expect(marked(on('tainted'), { taints: [] })).toBe('none')
})

test('endpoints without a node, or with their own intent, are unchanged', () => {
  expect(marked(on(null))).toBe('none')
  expect(marked(on('tainted', { intent: 'hard', note: 'ours' }))).toBe('hard ours')
  expect(marked(on('tainted', { note: 'ours' }))).toBe(
    'soft ours, node tainted: taint karpenter.sh/disrupted',
  )
})

test('if all are marked, all serve on', () => {
  const decisions = mapEndpoints(markByNodes([on('tainted'), on('deleting')], nodes))
  expect(decisions.map(({ action }) => action)).toEqual(['serve', 'serve'])
})

test.each([
  [[], ['n1'], {}, 'nodes[0] is "n1", expected a Node'],
  [[], {}, {}, 'nodes is an object, expected a list of Nodes'],
  [{}, [], {}, 'endpoints is an object, expected a list of endpoints'],
  [[null], [], {}, 'endpoints[0] is null, expected an endpoint'],
  [[{ nodeName: 1n }], [], {}, 'endpoints[0].nodeName is 1n, expected a text'],
  [[{ note: null }], [], {}, 'endpoints[0].note is null, expected a text'],
  [[], [], { conditions: 'Drained' }, 'conditions is "Drained", expected a list of texts'],
  [[], [], { selector: 'a' }, `unknown option 'selector'`],
])('%#: refused', (endpoints, list, options, message) => {
  expect(() => markByNodes(endpoints as never, list as never, options as never)).toThrow(message)
})
