import fc from 'fast-check'
import {
  mergeSlices,
  normaliseConditions,
  type EndpointInput,
  type EndpointSlice,
} from 'drainable/endpoints'
import { describe, expect, test } from 'vitest'
import { fixture, type MergeVector } from './vectors.js'

describe('vectors', () => {
  test.each(fixture('slice-merge') as MergeVector[])('$name', ({ slices, options, expected }) => {
    const { portName, ...rest } = options
    const merged = mergeSlices(slices, portName === undefined ? rest : { ...rest, port: portName })
    expect(merged.map(comparable).toSorted(byPlace)).toEqual(expected)
  })
})

const http = { name: 'http', port: 80, protocol: 'TCP' }

function slice(
  name: string,
  endpoints: EndpointSlice['endpoints'],
  more: Partial<EndpointSlice> = {},
): EndpointSlice {
  return {
    metadata: { name },
    addressType: 'IPv4',
    ports: [http],
    endpoints: endpoints ?? null,
    ...more,
  }
}

describe('ports', () => {
  const two = slice('s', [{ addresses: ['10.0.0.1'] }], {
    ports: [http, { name: 'metrics', port: 9090 }, { name: 'open', port: null }],
  })
  const numbers = (list: readonly EndpointInput[]): unknown[] => list.map(({ port }) => port)

  test('are all taken without an option, except those without a number', () => {
    expect(numbers(mergeSlices([two]))).toEqual([80, 9090])
  })

  test('are chosen by name, by number, or by a number in a text', () => {
    expect(numbers(mergeSlices([two], { port: 'metrics' }))).toEqual([9090])
    expect(numbers(mergeSlices([two], { port: 80 }))).toEqual([80])
    expect(numbers(mergeSlices([two], { port: '9090' }))).toEqual([9090])
    expect(numbers(mergeSlices([two], { port: 'grpc' }))).toEqual([])
  })

  test('have the default names and protocols of the API', () => {
    const bare = slice('s', [{ addresses: ['10.0.0.1'] }], { ports: [{ port: 53 }] })
    expect(mergeSlices([bare])).toMatchObject([{ portName: '', protocol: 'TCP' }])
    expect(mergeSlices([bare], { protocol: 'UDP' })).toEqual([])
    expect(numbers(mergeSlices([bare], { port: '' }))).toEqual([53])
  })

  test('are skipped in a slice without ports, unless a port is given', () => {
    for (const ports of [[], null, undefined]) {
      const headless = {
        metadata: { name: 's' },
        addressType: 'IPv4',
        ports,
        endpoints: [{ addresses: ['10.0.0.1'] }],
      }
      expect(mergeSlices([headless])).toEqual([])
      expect(mergeSlices([headless], { port: 'http' })).toEqual([])
      expect(numbers(mergeSlices([headless], { port: 9000 }))).toEqual([9000])
      expect(numbers(mergeSlices([headless], { port: 'http', defaultPort: 9001 }))).toEqual([9001])
    }
  })
})

describe('the slices that count', () => {
  const fqdn = slice('s', [{ addresses: ['db.example.test'] }], { addressType: 'FQDN' })

  test('include slices of names only on request', () => {
    expect(mergeSlices([fqdn])).toEqual([])
    expect(mergeSlices([fqdn], { families: ['FQDN'] })).toMatchObject([{ addressType: 'FQDN' }])
  })

  test('are those of one service by its label', () => {
    const labelled = (name: string, namespace: string, service: string): EndpointSlice =>
      slice(name, [{ addresses: [`10.0.0.${name.length}`] }], {
        metadata: { name, namespace, labels: { 'kubernetes.io/service-name': service } },
      })
    const list = [
      labelled('a', 'shop', 'web'),
      labelled('bb', 'shop', 'api'),
      labelled('ccc', 'test', 'web'),
    ]
    const names = (service: string): unknown[] =>
      mergeSlices(list, { service }).map((one) => one.fromSlice)
    expect(names('api')).toEqual(['bb'])
    expect(names('shop/web')).toEqual(['a'])
    expect(names('shop/db')).toEqual([])
  })

  describe('slices of several Services', () => {
    const of = (service: string | undefined, namespace: string | null = 'shop'): EndpointSlice =>
      slice(`${namespace}-${service}`, [{ addresses: ['10.0.0.1'] }], {
        metadata: {
          name: `${namespace}-${service}`,
          namespace,
          ...(service === undefined ? {} : { labels: { 'kubernetes.io/service-name': service } }),
        },
      })

    test.each<[string, EndpointSlice[], string | undefined, string]>([
      ['two in one namespace', [of('web'), of('api')], undefined, 'shop/api, shop/web'],
      [
        'one name in two namespaces',
        [of('web'), of('web', 'test')],
        undefined,
        'shop/web, test/web',
      ],
      ['the same, asked for by name', [of('web'), of('web', 'test')], 'web', 'shop/web, test/web'],
      ['no namespace and another', [of('web', null), of('web')], 'web', 'default/web, shop/web'],
      [
        'one beside none',
        [of('web'), of(undefined)],
        undefined,
        'shop/web, slices without the label',
      ],
      [
        'none in two namespaces',
        [of(undefined), of(undefined, 'test')],
        undefined,
        'in shop, slices',
      ],
    ])('%s: are refused with their names', (_name, slices, service, names) => {
      const options = service === undefined ? {} : { service }
      expect(() => mergeSlices(slices, options)).toThrow(names)
      expect(() => mergeSlices(slices.toReversed(), options)).toThrow(names)
    })

    test('are chosen by namespace/name, or by an unambiguous name', () => {
      const all = [of('web'), of('api'), of('web', 'test'), of(undefined)]
      expect(mergeSlices(all, { service: 'test/web' })).toMatchObject([{ fromSlice: 'test-web' }])
      expect(mergeSlices(all, { service: 'api' })).toMatchObject([{ fromSlice: 'shop-api' }])
      expect(mergeSlices([of('web', null), of('web', 'default')])).toHaveLength(1)
    })

    test('are refused even with another address family or no endpoints', () => {
      const six = { ...of('api'), addressType: 'IPv6' }
      expect(() => mergeSlices([of('web'), six])).toThrow('2 Services')
      expect(() => mergeSlices([of('web'), { ...of('api'), endpoints: null }])).toThrow(
        '2 Services',
      )
    })

    test('are not all named if they are many', () => {
      const many = Array.from({ length: 300 }, (_, i) => of(`s${i}`))
      expect(() => mergeSlices(many)).toThrow(/300 Services: (shop\/s\d+, ){10}…;/)
    })
  })

  test('endpoints without an address are skipped', () => {
    expect(mergeSlices([slice('s', [{ addresses: [] }, { addresses: [''] }])])).toEqual([])
  })
})

describe('records of one address and port', () => {
  test('IPv6 in any spelling is one address', () => {
    const six = (name: string, address: string): EndpointSlice =>
      slice(name, [{ addresses: [address] }], { addressType: 'IPv6' })
    const merged = mergeSlices([six('b', '2001:db8:0::1'), six('a', '2001:DB8::0001')])
    expect(merged).toMatchObject([{ addresses: ['2001:DB8::0001'], fromSlice: 'a' }])
  })

  test('unset conditions stay unset for the strategies', () => {
    const [one] = mergeSlices([
      slice('s', [{ addresses: ['10.0.0.1'], conditions: { ready: false } }]),
    ])
    expect(one?.conditions).toEqual({ ready: false })
  })

  test('hints become names', () => {
    const hints = { forZones: [{ name: 'a' }], forNodes: [{ name: 'n1' }, { name: 'n2' }] }
    const [one] = mergeSlices([slice('s', [{ addresses: ['10.0.0.1'], hints }])])
    expect(one?.hints).toEqual({ forZones: ['a'], forNodes: ['n1', 'n2'] })
  })

  test('of an object that is twice in a slice the better one counts', () => {
    const twice = [
      { addresses: ['10.0.0.1'], conditions: { ready: false } },
      { addresses: ['10.0.0.1'], conditions: { ready: true } },
    ]
    expect(mergeSlices([slice('s', twice)])).toMatchObject([{ conditions: { ready: true } }])
  })
})

describe('one pod in two slices', () => {
  const UP = { ready: true, serving: true, terminating: false }
  const DOWN = { ready: false, serving: false, terminating: false }
  const LEAVING = { ready: false, serving: true, terminating: true }
  type Said = readonly [string, string | null, typeof UP, string?]

  /** What counts of slices that each say: name, version, conditions, pod. */
  const ready = (...said: readonly Said[]) => {
    const slices = said.map(([name, resourceVersion, conditions, uid = 'p1']) =>
      slice(name, [{ addresses: ['10.0.0.1'], conditions, targetRef: { uid } }], {
        metadata: { name, resourceVersion },
      }),
    )
    const [one, ...more] = mergeSlices(slices)
    expect(more).toEqual([])
    expect(mergeSlices([...slices].reverse())).toEqual([one])
    return one?.conditions
  }

  test('is as the newer one says, whatever their names', () => {
    expect(ready(['a', '9', UP], ['b', '10', DOWN])).toEqual(DOWN)
    expect(ready(['a', '10', DOWN], ['b', '9', UP])).toEqual(DOWN)
    expect(ready(['a', '10', UP], ['b', '9', DOWN])).toEqual(UP)
    const long = '123456789012345678901234567890'
    expect(ready(['a', `${long}1`, UP], ['b', `${long}2`, DOWN])).toEqual(DOWN)
  })

  test('stays terminating although a newer one says otherwise', () => {
    expect(ready(['a', '9', LEAVING], ['b', '10', UP])).toEqual(LEAVING)
  })

  test.each([
    ['no versions', null, null],
    ['one version', '9', null],
    ['versions that are no numbers', 'x9', 'x10'],
    ['versions with zeros before them', '09', '010'],
    ['one version twice', '9', '9'],
  ])('is as the better one says with %s', (_, a, b) => {
    expect(ready(['a', a, UP], ['b', b, DOWN])).toEqual(UP)
  })

  test('is not the same as another pod at its address', () => {
    expect(ready(['a', '9', UP, 'p1'], ['b', '10', DOWN, 'p2'])).toEqual(UP)
  })
})

describe('the order of slices', () => {
  const tri = fc.constantFrom(true, false, null)
  const endpoint = fc.record({
    addresses: fc.constantFrom(['10.0.0.1'], ['10.0.0.2'], ['10.0.0.3']),
    conditions: fc.record({ ready: tri, serving: tri, terminating: tri }),
    targetRef: fc.option(fc.record({ uid: fc.constantFrom('p1', 'p2', 'p3') })),
    zone: fc.constantFrom('a', 'b'),
  })
  const slices = (name: fc.Arbitrary<string | null>): fc.Arbitrary<EndpointSlice[]> =>
    fc.array(
      fc.record({
        metadata: fc.record({ name }),
        addressType: fc.constant('IPv4'),
        ports: fc.constant([http]),
        endpoints: fc.array(endpoint, { maxLength: 4 }),
      }),
      { maxLength: 5 },
    )
  const sets = fc.oneof(slices(fc.constantFrom('s1', 's2', 's3')), slices(fc.constant(null)))

  test('does not change the list, nor does the list given twice', () => {
    const shuffled = sets.chain((list) =>
      fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
    )
    fc.assert(
      fc.property(shuffled, ([list, other]) => {
        const merged = mergeSlices(list)
        expect(mergeSlices(other)).toEqual(merged)
        expect(mergeSlices([...other, ...structuredClone(list)])).toEqual(merged)
      }),
      { numRuns: 1_000 },
    )
  })

  test('one record per address and port, and it is one that was there', () => {
    fc.assert(
      fc.property(sets, (list) => {
        const merged = mergeSlices(list)
        const all = list.flatMap((one) => one.endpoints ?? [])
        expect(new Set(merged.map((one) => one.addresses[0])).size).toBe(merged.length)
        expect(merged.length).toBe(new Set(all.map((one) => one.addresses[0])).size)
      }),
    )
  })

  test('unread fields, such as a BigInt or a circle, are ignored', () => {
    const odd = { ...slice('s', [{ addresses: ['10.0.0.1'] }]), big: 1n, self: {} }
    odd.self = odd
    expect(mergeSlices([odd, { ...odd }])).toHaveLength(1)
  })

  test('the input is not changed', () => {
    fc.assert(
      fc.property(sets, (list) => {
        const before = structuredClone(list)
        mergeSlices(list)
        expect(list).toEqual(before)
      }),
    )
  })
})

describe('input that is not an EndpointSlice', () => {
  test.each([
    ['web', {}, 'slices is "web", expected a list of EndpointSlices'],
    [[null], {}, 'slices[0] is null, expected an EndpointSlice'],
    [
      [{ subsets: [] }],
      {},
      'slices[0] is an Endpoints object, which has no conditions: give those of its EndpointSlices',
    ],
    [[slice('web-x1', 3 as never)], {}, 'slices[0] (web-x1).endpoints is 3, expected a list'],
    [
      [slice('web-x1', [{ addresses: '10.0.0.1' } as never])],
      {},
      'slices[0] (web-x1).endpoints[0].addresses is "10.0.0.1"',
    ],
    [
      [slice('web-x1', [{ addresses: [1] } as never])],
      {},
      '.endpoints[0].addresses[0] is 1, expected a text',
    ],
    [
      [slice('web-x1', [{ addresses: [], conditions: { serving: 'yes' } } as never])],
      {},
      'slices[0] (web-x1).endpoints[0].conditions.serving is "yes", expected true, false or null',
    ],
    [
      [slice('s', [{ addresses: [], hints: { forZones: ['a'] } } as never])],
      {},
      'hints.forZones[0] is "a"',
    ],
    [
      [slice('s', [], { ports: [{ port: '80' }] as never })],
      {},
      'slices[0] (s).ports[0].port is "80", expected a port from 1 to 65535',
    ],
    [[slice('s', [], { ports: [{ port: 99_999 }] })], {}, 'ports[0].port is 99999'],
    [[slice('s', [], { ports: [{ port: 80n }] as never })], {}, 'ports[0].port is 80n'],
    [[slice('s', [{ addresses: [], nodeName: 1n } as never])], {}, 'endpoints[0].nodeName is 1n'],
    [
      [slice('s', [{ addresses: [], targetRef: { uid: 1n } } as never])],
      {},
      'endpoints[0].targetRef.uid is 1n, expected a text',
    ],
    [
      [slice('s', [], { metadata: { labels: { 'kubernetes.io/service-name': 1 } } as never })],
      {},
      `labels['kubernetes.io/service-name'] is 1, expected a text`,
    ],
    // Sparse: a place without a slice is not skipped.
    [Array(1), {}, 'slices[0] is missing, expected an EndpointSlice'],
    [[], { port: '99999' }, 'port is 99999, expected a port from 1 to 65535'],
    [[], { port: 80n }, `port is 80n, expected a port's name or number`],
    [[], { service: '' }, `service is "", expected a Service's name, or namespace/name`],
    [[], { service: 'shop/' }, 'service is "shop/"'],
    [[], { port: 0 }, 'port is 0, expected a port from 1 to 65535'],
    [[], { port: true }, `port is true, expected a port's name or number`],
    [[], { ports: 80 }, `unknown option 'ports'`],
    [[], { families: ['IPv5'] }, `families[0] is "IPv5", expected 'IPv4', 'IPv6' or 'FQDN'`],
  ])('%#', (slices, options, message) => {
    expect(() => mergeSlices(slices as never, options as never)).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTIONS',
        message: expect.stringContaining(message) as string,
      }),
    )
  })
})

function comparable(one: EndpointInput): Record<string, unknown> {
  const { addresses, port, protocol, addressType, fromSlice, conditions } = one
  return {
    address: addresses[0],
    port,
    protocol,
    addressType,
    fromSlice,
    conditions: normaliseConditions(conditions),
  }
}

function byPlace(a: Record<string, unknown>, b: Record<string, unknown>): number {
  const place = (one: Record<string, unknown>): string =>
    [one.addressType, one.address, one.port].join(' ')
  return place(a) < place(b) ? -1 : 1
}
