import {
  mapEndpoints,
  mapNodes,
  mergeSlices,
  type MapNodesOptions,
  type Node,
} from 'drainable/endpoints'
import { describe, expect, test } from 'vitest'

interface Parts {
  readonly ready?: string | null
  readonly labels?: Record<string, string>
  readonly taints?: readonly string[]
  readonly cordoned?: boolean
  readonly deleting?: boolean
  /** Types that are True. */
  readonly conditions?: readonly string[]
  readonly addresses?: readonly [type: string, address: string][]
}

function node(name: string, parts: Parts = {}): Node {
  const { ready = 'True', labels = {}, taints = [], cordoned = false, deleting = false } = parts
  const addresses = parts.addresses ?? [
    ['Hostname', name],
    ['InternalIP', `10.0.0.${name.slice(1)}`],
  ]
  return {
    metadata: {
      name,
      uid: `uid-${name}`,
      labels,
      ...(deleting ? { deletionTimestamp: '2026-11-21T12:00:00Z' } : {}),
    },
    spec: { taints: taints.map((key) => ({ key, effect: 'NoSchedule' })), unschedulable: cordoned },
    status: {
      addresses: addresses.map(([type, address]) => ({ type, address })),
      conditions: [
        { type: 'MemoryPressure', status: 'False' },
        ...(ready === null ? [] : [{ type: 'Ready', status: ready }]),
        ...(parts.conditions ?? []).map((type) => ({ type, status: 'True' })),
      ],
    },
  }
}

const ports = [30_080]

function judge(nodes: readonly Node[], options: Partial<MapNodesOptions> = {}): string[] {
  const decisions = mapEndpoints(mapNodes(nodes, { ports, ...options }))
  return decisions.map((d) => [d.action, d.serving ? '' : 'dead', d.ifAbsent].join(' '))
}

describe('the nodes that serve', () => {
  test('give an endpoint for each port, at the first internal address', () => {
    expect(mapNodes([node('n1')], { ports: [80, 443] })).toEqual(
      [80, 443].map((port) => ({
        addresses: ['10.0.0.1'],
        addressType: 'IPv4',
        port,
        conditions: { ready: true, serving: true, terminating: false },
        targetRef: { kind: 'Node', name: 'n1', uid: 'uid-n1' },
        nodeName: 'n1',
      })),
    )
  })

  test('without ports give one endpoint for all of them', () => {
    const [one] = mapNodes([node('n1')], { ports: [] })
    expect(one).toMatchObject({ addresses: ['10.0.0.1'] })
    expect(one).not.toHaveProperty('port')
  })

  test.each(['False', 'Unknown', null])('do not include one with Ready %s', (ready) => {
    expect(judge([node('n1', { ready }), node('n2')])).toEqual(['drain dead skip', 'serve  add'])
  })

  test('have addresses by type and family', () => {
    const dual = node('n1', {
      addresses: [
        ['InternalIP', '2001:db8::1'],
        ['InternalIP', '10.0.0.1'],
        ['ExternalIP', '192.0.2.1'],
      ],
    })
    const found = (options: Partial<MapNodesOptions>): unknown[] =>
      mapNodes([dual], { ports, ...options }).map(({ addresses }) => addresses[0])
    expect(found({})).toEqual(['2001:db8::1'])
    expect(found({ addressType: 'ExternalIP' })).toEqual(['192.0.2.1'])
    expect(found({ families: ['IPv4'] })).toEqual(['10.0.0.1'])
    expect(found({ families: ['IPv4', 'IPv6'] })).toEqual(['10.0.0.1', '2001:db8::1'])
  })

  test('are left out without such an address, and that is said', () => {
    const [decision] = mapEndpoints(mapNodes([node('n1')], { ports, addressType: 'ExternalIP' }))
    expect(decision).toMatchObject({ action: 'exclude', address: '' })
    expect(decision?.reason).toBe('it has no address (node n1 has no ExternalIP)')
  })
})

describe('the nodes that leave', () => {
  const stays = node('n2')

  test.each<[string, Parts, Partial<MapNodesOptions>, string]>([
    ['cluster autoscaler', { taints: ['ToBeDeletedByClusterAutoscaler'] }, {}, 'taint ToBeDeleted'],
    ['karpenter', { taints: ['karpenter.sh/disrupted'] }, {}, 'taint karpenter.sh/disrupted'],
    [
      'a taint of ours',
      { taints: ['example.test/bye'] },
      { taints: ['example.test/bye'] },
      'taint example.test/bye',
    ],
    [
      'the exclude label, whatever its value',
      { labels: { 'node.kubernetes.io/exclude-from-external-load-balancers': 'false' } },
      {},
      'label node.kubernetes.io/exclude',
    ],
    ['an exclude label of ours', { labels: { out: '' } }, { excludeLabel: 'out' }, 'label out'],
    ['deletion that waits for a finalizer', { deleting: true }, {}, 'the node is being deleted'],
    ...['DrainInProgress', 'Drained', 'GracefulNodeShutdownInProgress'].map(
      (type): [string, Parts, object, string] => [
        type,
        { conditions: [type] },
        {},
        `condition ${type}`,
      ],
    ),
    ...['MaintenancePlanned', 'MaintenanceInProgress'].map(
      (type): [string, Parts, object, string] => [
        `${type}, if wanted`,
        { conditions: [type] },
        { conditions: [type] },
        `condition ${type}`,
      ],
    ),
    ['a cordon, if wanted', { cordoned: true }, { cordon: 'drain' }, 'cordoned'],
  ])('%s: soft', (_name, parts, options, reason) => {
    const leaving = node('n1', parts)
    expect(judge([leaving, stays], options)).toEqual(['drain  skip', 'serve  add'])
    expect(judge([leaving], options)).toEqual(['serve  add'])
    expect(mapEndpoints(mapNodes([leaving], { ports, ...options }))[0]?.reason).toContain(reason)
  })

  test.each<[string, Parts, Partial<MapNodesOptions>]>([
    ['a cordon alone', { cordoned: true }, {}],
    [
      'other taints',
      { taints: ['node.kubernetes.io/disk-pressure', 'DeletionCandidateOfClusterAutoscaler'] },
      {},
    ],
    ['planned maintenance alone', { conditions: ['MaintenancePlanned'] }, {}],
    ['maintenance alone', { conditions: ['MaintenanceInProgress'] }, {}],
    ['a default condition that was replaced', { conditions: ['Drained'] }, { conditions: [] }],
    ['a default taint that was replaced', { taints: ['karpenter.sh/disrupted'] }, { taints: [] }],
  ])('%s: stays', (_name, parts, options) => {
    expect(judge([node('n1', parts)], options)).toEqual(['serve  add'])
  })

  test('include those not selected any more, which are never added', () => {
    const worker = { labels: { role: 'worker' } }
    expect(judge([node('n1'), node('n2', worker)], { selector: 'role=worker' })).toEqual([
      'drain  skip',
      'serve  add',
    ])
    expect(judge([node('n1')], { selector: 'role=worker' })).toEqual(['serve  skip'])
  })
})

describe('a graceful shutdown', () => {
  const shutdown = { conditions: ['GracefulNodeShutdownInProgress'] }

  test('drains NotReady nodes that answer, and uses them as the last', () => {
    const leaving = node('n1', { ready: 'False', ...shutdown })
    expect(judge([leaving, node('n2')])).toEqual(['drain  skip', 'serve  add'])
    expect(judge([leaving])).toEqual(['serve  add'])
    const [decision] = mapEndpoints(mapNodes([leaving, node('n2')], { ports }))
    expect(decision?.reason).toContain('condition GracefulNodeShutdownInProgress')
  })

  test('still answers if the conditions that end a node were replaced', () => {
    const leaving = node('n1', { ready: 'False', ...shutdown })
    expect(judge([leaving, node('n2')], { conditions: [] })).toEqual(['drain  skip', 'serve  add'])
  })

  test.each([
    ['Unknown', shutdown],
    ['False', { conditions: ['Drained'] }],
    ['False', { conditions: ['DrainInProgress'] }],
  ])('does not answer with Ready %s, %j', (ready, parts) => {
    expect(judge([node('n1', { ready, ...parts }), node('n2')])).toEqual([
      'drain dead skip',
      'serve  add',
    ])
  })

  test.each(['False', 'Unknown'])('ignores a condition that is %s', (status) => {
    const conditions = [
      { type: 'Ready', status: 'True' },
      { type: 'GracefulNodeShutdownInProgress', status },
      { type: 'DrainInProgress', status },
    ]
    const { addresses = [] } = node('n1').status ?? {}
    expect(judge([{ ...node('n1'), status: { addresses, conditions } }])).toEqual(['serve  add'])
  })

  test('is no better than the best of its own endpoints', () => {
    const at = (ready: boolean, terminating: boolean) => [
      {
        addresses: ['10.1.0.1'],
        nodeName: 'n1',
        conditions: { ready, serving: ready, terminating },
      },
      { addresses: ['10.1.0.2'], nodeName: 'n2' },
    ]
    const nodes = [node('n1', { ready: 'False', ...shutdown }), node('n2')]
    expect(judge(nodes, { local: at(true, false) })[0]).toBe('drain  skip')
    expect(judge(nodes, { local: at(false, false) })[0]).toBe('drain dead skip')
  })
})

describe('externalTrafficPolicy Local', () => {
  const nodes = [
    node('n1'),
    node('n2'),
    node('n3'),
    node('n4', { taints: ['karpenter.sh/disrupted'] }),
  ]
  const endpoint = (n: number, nodeName: string, ready: boolean, terminating: boolean): object => ({
    addresses: [`10.1.0.${n}`],
    nodeName,
    conditions: { ready, serving: ready || terminating, terminating },
  })
  const local = mergeSlices([
    {
      metadata: { name: 's' },
      addressType: 'IPv4',
      ports: [{ port: 8080 }],
      endpoints: [
        endpoint(1, 'n1', false, true),
        endpoint(2, 'n1', true, false),
        endpoint(3, 'n2', false, true),
        endpoint(4, 'n3', false, false),
        endpoint(5, 'n4', true, false),
      ],
    },
  ])

  test('a node is as good as its best endpoint', () => {
    expect(judge(nodes, { local })).toEqual([
      'serve  add',
      'drain  skip',
      'drain dead skip',
      'drain  skip',
    ])
    const reasons = mapEndpoints(mapNodes(nodes, { ports, local })).map(({ reason }) => reason)
    expect(reasons[1]).toContain('all endpoints on the node are terminating')
    expect(reasons[2]).toContain('no endpoint on the node can serve')
  })

  test('with only terminating endpoints the node serves on', () => {
    expect(judge([node('n2'), node('n3')], { local })).toEqual(['serve  add', 'drain dead skip'])
  })

  test('without it, every ready node serves and forwards', () => {
    expect(judge(nodes.slice(0, 3))).toEqual(['serve  add', 'serve  add', 'serve  add'])
  })
})

describe('selectors, as in Kubernetes', () => {
  const labels = { role: 'worker', zone: 'a', 'example.test/kind': '' }

  test.each([
    ['', true],
    ['role=worker', true],
    ['role == worker , zone!=b', true],
    ['role=control', false],
    ['missing!=x', true],
    ['zone in (a, b)', true],
    ['zone in (b,c),role', false],
    ['zone notin (b)', true],
    ['missing notin (b)', true],
    ['zone notin (a,b)', false],
    ['role', true],
    ['!role', false],
    ['!missing', true],
    ['example.test/kind', true],
    ['example.test/kind=', true],
    ['example.test/kind in ()', true],
    ['toString', false],
  ])('%s: %s', (selector, selected) => {
    const [one] = mapNodes([node('n1', { labels })], { ports, selector })
    expect(one?.intent === undefined).toBe(selected)
  })

  test.each(['a in b', 'a=b c', '=b', 'a>1', 'a in (b', '-a'])('%s is refused', (selector) => {
    expect(() => mapNodes([], { ports, selector })).toThrow(`selector '${selector}' has the term`)
  })
})

describe('input outside the types', () => {
  test.each([
    [{}, { ports }, 'nodes is an object, expected a list of Nodes'],
    [[1], { ports }, 'nodes[0] is 1, expected a Node'],
    [[{ status: [] }], { ports }, 'nodes[0].status is a list, expected an object'],
    [
      [{ metadata: { name: 'n1' }, spec: { taints: [{}] } }],
      { ports },
      'nodes[0] (n1).spec.taints[0].key is missing, expected a text',
    ],
    [
      [{ status: { addresses: ['10.0.0.1'] } }],
      { ports },
      'nodes[0].status.addresses[0] is "10.0.0.1"',
    ],
    [
      [{ status: { conditions: [{ type: 'Ready', status: true }] } }],
      { ports },
      '.status is true, expected a text',
    ],
    [[{ spec: { unschedulable: 'yes' } }], { ports }, 'nodes[0].spec.unschedulable is "yes"'],
    [[], { ports, conditions: 'Drained' }, 'conditions is "Drained", expected a list of texts'],
    [[], { ports, local: [null] }, 'local[0] is null, expected an endpoint'],
    [[], { ports, local: [{ conditions: 1 }] }, 'local[0].conditions is 1, expected an object'],
    [[], {}, 'ports is missing, expected a list of ports'],
    [[], { ports: [0] }, 'ports[0] is 0, expected a port from 1 to 65535'],
    [[], { ports, cordon: 'yes' }, `cordon is "yes", expected 'ignore' or 'drain'`],
    [[], { ports, taint: 'a' }, `unknown option 'taint'`],
    [[], undefined, 'the options are missing, expected an object'],
  ])('%#', (nodes, options, message) => {
    expect(() => mapNodes(nodes as never, options as never)).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTIONS',
        message: expect.stringContaining(message) as string,
      }),
    )
  })
})

describe('mapNodes refuses', () => {
  test.each([
    ['an empty object', {}, /nodes\[0\].*expected a Node/],
    ['an object of another kind', { kind: 'Pod', metadata: { name: 'x' } }, /kind.*'Node'/],
  ])('%s', (_, given, words) => {
    expect(() => mapNodes([given], { ports: [80] })).toThrow(words)
  })
})
