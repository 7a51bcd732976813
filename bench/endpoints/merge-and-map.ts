/**
 * What merging and mapping costs beside `JSON.parse` of the same slices, from 1,000 to 100,000 endpoints.
 *
 *     npm run bench endpoints/merge-and-map
 *
 * Each size runs in a process of its own, so that peak memory is its own, too. Ends with status 1 if
 * merging and mapping all of them is dearer than parsing all of them.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { keep } from '../support/tables.js'
import { mapEndpoints, mergeSlices, planChanges, toDesired } from 'drainable/endpoints'
import type { Reading, Snapshot } from 'drainable/provider'

/** One line of the result. Times are the best of several rounds in milliseconds, memory in megabytes. */
interface Figures {
  readonly endpoints: number
  readonly family: 'IPv4' | 'IPv6'
  readonly megabytes: number
  readonly parse: number
  readonly mergeAndMap: number
  /** The same endpoints, ten parts one after another, each a Service of its own: all data is as large, and no set is. */
  readonly inTenths: number
  readonly plan: number
  /** Peak of a process that parses once, and of one that merges and maps once as well. */
  readonly peakParse: number
  readonly peakAll: number
}

/** Slices as the controller writes them: 100 endpoints each, with everything that a real one carries. */
function slicesText(count: number, family: Figures['family']): string {
  const perSlice = 100
  const items = Array.from({ length: Math.ceil(count / perSlice) }, (_, s) => ({
    metadata: {
      name: `web-${s.toString(36).padStart(5, '0')}`,
      namespace: 'shop',
      uid: `5f0c2d1e-0000-4000-8000-${String(s).padStart(12, '0')}`,
      resourceVersion: String(100_000 + s),
      generation: 3,
      creationTimestamp: '2026-11-21T12:00:00Z',
      labels: {
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
        'kubernetes.io/service-name': 'web',
      },
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Service', name: 'web', uid: 'b7', controller: true },
      ],
    },
    addressType: family,
    endpoints: Array.from({ length: Math.min(perSlice, count - s * perSlice) }, (_, e) => {
      const n = s * perSlice + e
      const leaving = n % 20 === 0
      return {
        addresses: [addressOf(n, family)],
        conditions: { ready: !leaving, serving: true, terminating: leaving },
        nodeName: `node-${n % 500}.example.test`,
        targetRef: {
          kind: 'Pod',
          namespace: 'shop',
          name: `web-6d4cf56db6-${n.toString(36).padStart(5, '0')}`,
          uid: `8a1b9c3d-0000-4000-8000-${String(n).padStart(12, '0')}`,
        },
        zone: `zone-${'abc'.charAt(n % 3)}`,
      }
    }),
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  }))
  return JSON.stringify(items)
}

function addressOf(n: number, family: Figures['family']): string {
  const [high, low] = [n >> 8, n & 255]
  return family === 'IPv4'
    ? `10.${high >> 8}.${high & 255}.${low}`
    : `2001:db8:${high.toString(16)}::${low.toString(16)}`
}

function snapshotOf(count: number, family: Figures['family']): Snapshot {
  const readings = Array.from({ length: count }, (_, n): Reading => {
    const address = addressOf(n, family)
    return {
      ref: { pool: 'web', member: `m${n}` },
      present: true,
      identity: address,
      address,
      port: 8080,
      own: 'ready',
      serves: true,
      health: 'up',
      scopes: [],
    }
  })
  return { readings, pools: [{ pool: 'web', serving: count, total: count, whenNone: 'refuse' }] }
}

/**
 * The best of several rounds. The kinds of work take turns in blocks: what else the machine does then
 * hits all of them alike, and hardly any cleans up after another.
 */
function best<K extends string>(rounds: number, work: Record<K, () => unknown>): Record<K, number> {
  const names = Object.keys(work) as K[]
  const turns = [names, names, names].flat()
  const times = Object.fromEntries(names.map((name) => [name, Infinity])) as Record<K, number>
  for (const name of turns) {
    for (let round = 0; round < rounds / 3; round++) {
      const began = performance.now()
      work[name]()
      times[name] = Math.min(times[name], performance.now() - began)
    }
  }
  return times
}

const PARTS = ['time', 'parse once', 'decide once'] as const
type Part = (typeof PARTS)[number]

/** In a child: one size, either the times of everything, or the peak memory of one go. */
function measure(count: number, family: Figures['family'], part: Part): Record<string, number> {
  const text = slicesText(count, family)
  const slices = JSON.parse(text) as unknown[]
  const decideOf = (some: readonly unknown[]) => mapEndpoints(mergeSlices(some, { port: 'http' }))
  const decide = () => decideOf(slices)
  const tenth = Math.ceil(slices.length / 10)
  const parts = Array.from({ length: 10 }, (_, n) => slices.slice(n * tenth, (n + 1) * tenth))
  if (part !== 'time') {
    const decisions = part === 'parse once' ? [] : decide()
    return { peak: process.resourceUsage().maxRSS / 1024, decisions: decisions.length }
  }
  const rounds = Math.max(30, Math.min(200, Math.round(200_000 / count)))
  const times = best(rounds, {
    parse: () => JSON.parse(text) as unknown,
    mergeAndMap: decide,
    inTenths: () => parts.map(decideOf),
  })
  const desired = toDesired(decide(), { pool: 'web' })
  const snapshot = snapshotOf(count, family)
  const ours = { pools: ['web'], owns: () => true }
  const plan = best(rounds, { plan: () => planChanges(desired, snapshot, ours) })
  return { megabytes: text.length / 1e6, ...times, ...plan }
}

function inChild(count: number, family: string, part: Part): Record<string, number> {
  const args = [...process.execArgv, fileURLToPath(import.meta.url), String(count), family, part]
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as Record<string, number>
}

function compare(endpoints: number, family: Figures['family']): Figures {
  const all = inChild(endpoints, family, 'time')
  const figure = (from: Record<string, number>, key: string): number =>
    Number((from[key] ?? Number.NaN).toPrecision(3))
  return {
    endpoints,
    family,
    megabytes: figure(all, 'megabytes'),
    parse: figure(all, 'parse'),
    mergeAndMap: figure(all, 'mergeAndMap'),
    inTenths: figure(all, 'inTenths'),
    plan: figure(all, 'plan'),
    peakParse: Math.round(inChild(endpoints, family, 'parse once').peak ?? Number.NaN),
    peakAll: Math.round(inChild(endpoints, family, 'decide once').peak ?? Number.NaN),
  }
}

const [count, family, asked] = process.argv.slice(2)
const part = PARTS.find((one) => one === asked)
if (part !== undefined) {
  console.log(JSON.stringify(measure(Number(count), family === 'IPv6' ? 'IPv6' : 'IPv4', part)))
} else {
  const sizes = [1_000, 3_000, 10_000, 30_000, 100_000]
  const rows = [...sizes.map((size) => compare(size, 'IPv4')), compare(100_000, 'IPv6')]
  console.table(
    Object.fromEntries(
      rows.map((row) => [
        `${row.endpoints} ${row.family}`,
        {
          'JSON MB': row.megabytes,
          'JSON.parse ms': row.parse,
          'merge and map ms': row.mergeAndMap,
          'in ten Services ms': row.inTenths,
          share: `${Math.round((100 * row.mergeAndMap) / row.parse)} %`,
          'plan ms': row.plan,
          'µs per endpoint': Number(((1000 * row.mergeAndMap) / row.endpoints).toPrecision(2)),
          'peak MB, parse only': row.peakParse,
          'peak MB, all': row.peakAll,
        },
      ]),
    ),
  )
  keep({
    id: 'endpoints',
    title: 'Endpoint slices into decisions, and a plan',
    about:
      'Best of several rounds in a process of its own, beside `JSON.parse` of the same slices.',
    columns: ['endpoints', 'JSON.parse ms', 'merge and map ms', 'plan ms', 'peak MB'],
    rows: rows.map((row) => [
      `${row.endpoints.toLocaleString('en')} ${row.family}`,
      ...[row.parse, row.mergeAndMap, row.plan, row.peakAll],
    ]),
    plot: { column: 'merge and map ms', axis: 'milliseconds to merge and map', log: true },
    notShown:
      'What reading the slices from an API server costs, and what carrying out the plan costs.',
  })
  const sum = (key: 'parse' | 'mergeAndMap'): number => rows.reduce((n, row) => n + row[key], 0)
  const cheaper = sum('mergeAndMap') < sum('parse')
  if (!cheaper) console.error('merging and mapping is dearer than JSON.parse')
  process.exitCode = cheaper ? 0 : 1
}
