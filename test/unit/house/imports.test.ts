import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { adapterNames, present, root, specifier } from '../../../scripts/package/entries.ts'
import { fileExists, findCycle, graph, loadedBy } from './source-graph.js'

/** Fakes that are entries of their own; what they share lives beside them. */
const fakes = adapterNames()

/** The layer that a file belongs to; a name after a slash is its own folder in it. */
function layerOf(file: string): string {
  const [, first = '', second = ''] = file.split('/')
  if (first === 'adapters') return `adapters/${second}`
  if (first === 'testing') return fakes.includes(second) ? `testing/${second}` : 'testing'
  if (first === 'index.ts') return 'entry'
  return first
}

/** What the API of Kubernetes keeps for others, in their own terms. */
const KEPT_BY_KUBERNETES = [
  'src/fleet/lease/entry-lease.ts',
  'src/fleet/lease/lease.ts',
  'src/core/tickets/store.ts',
]

/** Layers that each may import, itself aside. Arrows go one way: contract, then core or kit, then adapters. */
function mayImport(from: string): (layer: string, file: string) => boolean {
  const [kind] = from.split('/')
  switch (kind) {
    case 'provider':
      return () => false
    case 'kit':
    case 'endpoints':
      return (layer) => layer === 'provider'
    case 'core':
      // The channels carry the events of a roll: its type, and nothing else.
      return (layer, file) => layer === 'provider' || file === 'src/fleet/roll/events.ts'
    case 'fleet':
      return (layer) => ['provider', 'core'].includes(layer)
    case 'reconcile':
      return (layer) => ['provider', 'core', 'fleet', 'endpoints'].includes(layer)
    case 'kubernetes':
      return (layer, file) =>
        ['provider', 'endpoints'].includes(layer) || KEPT_BY_KUBERNETES.includes(file)
    case 'entry':
      return (layer) => ['provider', 'core', 'fleet', 'reconcile'].includes(layer)
    case 'adapters':
      return (layer, file) =>
        layer === 'provider' || layer === 'kit' || file === 'src/core/with-events.ts'
    case 'testing':
      return (layer) => ['provider', 'core', 'fleet', 'testing'].includes(layer) && from !== layer
    case 'cli':
      return () => true
    default:
      throw new Error(`src/${from} belongs to no layer: add it to ${import.meta.filename}`)
  }
}

/** What each room of the core may import of others, rooms and single files; all may import what stands beside the rooms. */
const rooms: Readonly<Record<string, readonly string[]>> = {
  member: [],
  balancer: ['member/'],
  tickets: ['member/', 'balancer/home.ts'],
  calls: ['member/', 'balancer/', 'tickets/'],
}

/** The reports of a ticket that could not be gone on with are no matter of a record: they belong to `calls`. */
const owed = [
  'src/core/member/said/report.ts -> src/core/tickets/member.ts',
  'src/core/member/said/report.ts -> src/core/tickets/ticket.ts',
]

function roomOf(file: string): string | undefined {
  return /^src\/core\/([^/]+)\//.exec(file)?.[1]
}

describe('the direction of imports', () => {
  it.each([...new Set([...graph.keys()].map(layerOf))].sort())('holds in src/%s', (from) => {
    const allowed = mayImport(from)
    const wrong = [...graph]
      .filter(([file]) => layerOf(file) === from)
      .flatMap(([file, imports]) => imports.map((item) => ({ file, ...item })))
      .filter((item) => item.own && layerOf(item.to) !== from)
      .filter((item) => !allowed(layerOf(item.to), item.to))
    expect(wrong.map((item) => `${item.file} -> ${item.to}`)).toEqual([])
  })

  it.each(Object.keys(rooms))('holds in src/core/%s', (room) => {
    const allowed = rooms[room] ?? []
    const wrong = [...graph]
      .filter(([file]) => roomOf(file) === room)
      .flatMap(([file, imports]) => imports.map(({ to, own }) => ({ file, to, own })))
      .filter(({ to, own }) => own && roomOf(to) !== undefined && roomOf(to) !== room)
      .filter(({ to }) => !allowed.some((one) => to.startsWith(`src/core/${one}`)))
      .map(({ file, to }) => `${file} -> ${to}`)
    expect(wrong.filter((one) => !owed.includes(one))).toEqual([])
  })

  it('is known of every room of the core', () => {
    const found = [...graph.keys()].map(roomOf).filter((room) => room !== undefined)
    expect(Object.keys(rooms).sort()).toEqual([...new Set(found)].sort())
  })

  it('reads imports of every form', () => {
    expect(graph.size).toBeGreaterThan(10)
    const provider = graph.get('src/provider/index.ts') ?? []
    expect(provider.map((item) => item.to)).toContain('src/provider/contract.ts')
  })

  it('leads to existing files', () => {
    const lost = [...graph].flatMap(([file, imports]) =>
      imports
        .filter((item) => item.own && !item.to.includes('/gen/') && !fileExists(item.to))
        .map((item) => `${file} -> ${item.to}`),
    )
    expect(lost).toEqual([])
  })

  it('of control planes and of the reading of proxies meets in sink.ts alone, in Envoy', () => {
    const room = (file: string): string | undefined =>
      /^src\/adapters\/envoy\/(\w+)\//.exec(file)?.[1]
    const planes = ['sources', 'grpc']
    const proxies = ['session', 'read', 'change']
    const across = [...graph].flatMap(([file, imports]) => {
      const from = room(file) ?? ''
      const others = planes.includes(from) ? proxies : proxies.includes(from) ? planes : []
      return imports.flatMap(({ to }) => (others.includes(room(to) ?? '') ? [to] : []))
    })
    expect([...new Set(across)]).toEqual(['src/adapters/envoy/sources/sink.ts'])
  })

  it('has no circle', () => {
    expect(findCycle()).toBeUndefined()
  })
})

describe('packages', () => {
  const manifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
    dependencies: Record<string, string>
    peerDependencies: Record<string, string>
  }
  /** Compiled into the build; see THIRD-PARTY-NOTICES.md there. */
  const bundled = [
    '@bufbuild/protobuf',
    'cli-truncate',
    'commander',
    'eventemitter3',
    'log-update',
    'zod',
  ]
  /** Entries that check no input of a caller need none. */
  const light = ['endpoints', 'provider', 'testing']

  it.each(present.map((item) => [specifier(item), item] as const))(
    '%s loads no package that it does not need',
    (_, item) => {
      const { packages } = loadedBy(item.source)
      const extra = [...packages].filter((name) => !item.externals.includes(name))
      const allowed = [
        ...(['envoy/grpc', 'testing/envoy'].includes(item.name) ? ['@bufbuild/protobuf'] : []),
        ...(light.includes(item.name) ? [] : ['eventemitter3', 'zod']),
      ]
      expect(extra.filter((name) => !allowed.includes(name))).toEqual([])
    },
  )

  it('contain each runtime dependency because some entry uses it', () => {
    const used = new Set(present.flatMap((item) => [...loadedBy(item.source).packages]))
    expect([...used].filter((name) => !bundled.includes(name)).sort()).toEqual(
      [...Object.keys(manifest.dependencies), ...Object.keys(manifest.peerDependencies)].sort(),
    )
  })

  it('keep what is bundled, tests and types away from users', () => {
    const every = [...graph].flatMap(([file, imports]) =>
      imports.filter((item) => !item.own).map((item) => ({ file, name: item.to })),
    )
    const known = [
      ...Object.keys(manifest.dependencies),
      ...Object.keys(manifest.peerDependencies),
      ...bundled,
    ]
    expect(every.filter(({ name }) => !known.includes(name))).toEqual([])
  })
})
