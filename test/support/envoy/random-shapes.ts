/** Clusters of any shape on a real Envoy: once a drain is idle and verified, no request may reach its member. */
import { drain, isDrainableError } from 'drainable'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { Random } from '../../model/random.js'
import type { Engine } from '../engines.js'
import type { RandomRun } from '../random-run.js'
import { startBackend, type Backend } from './backend.js'
import { ask } from './client.js'
import { startEnvoy, workDir } from './proxy.js'
import { writeEds } from './sets.js'

/** Requests that are sent after a drain said idle. */
const REQUESTS = 40
/** A panic that was allowed never ends. */
const TIMEOUT = '4s'

interface Shape {
  readonly set: Record<string, unknown>
  readonly cluster: Record<string, unknown>
  readonly route: Record<string, unknown>
  readonly runtime: Record<string, unknown> | undefined
}

/** Plays so many clusters, each from a seed of its own, and drains some members of each. */
export async function drainShapes(
  { path }: Engine,
  seed: number,
  runs: number,
): Promise<RandomRun> {
  const outcomes: Record<string, number> = {}
  const falseIdles: string[] = []
  let requests = 0
  for (let n = 0; n < runs; n += 1) {
    const random = new Random(seed + n)
    const backends = await Promise.all(Array.from({ length: random.int(2, 9) }, startBackend))
    const shape = shapeOf(random, backends)
    const dir = await workDir()
    const file = `${dir.path}/web.json`
    await writeEds(file, [shape.set])
    const { cluster, route, runtime } = shape
    const more = runtime === undefined ? {} : { runtime }
    const proxy = await startEnvoy({ path, eds: { file }, cluster, route, ...more })
    const lb = envoy({
      endpoints: fileEndpoints({ cluster: 'web', path: file }),
      admin: [proxy.admin],
      onPanic: random.chance(0.3) ? 'allow' : 'refuse',
    })
    try {
      for (const backend of random.some(backends, 3)) {
        const ref = { pool: 'web', member: backend.member }
        const options = { timeout: TIMEOUT, keepReady: 0 } as const
        const outcome = await drain(lb, ref, options).then(
          (report) => (report.members[0]?.verifiedIdle === true ? 'idle' : 'idle, unverified'),
          (error: unknown) => (isDrainableError(error) ? error.code : String(error)),
        )
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
        if (outcome !== 'idle') continue
        const before = backend.requests.length
        for (let i = 0; i < REQUESTS; i += 1) {
          await ask(proxy.http, '/', { headers: { 'x-key': `${i}` } }).catch(() => undefined)
          requests += 1
        }
        const late = backend.requests.length - before
        if (late === 0) continue
        falseIdles.push(
          `seed ${seed + n}: ${late} of ${REQUESTS} came to ${ref.member}, ${JSON.stringify(shape)}`,
        )
      }
    } finally {
      await lb.close()
      await Promise.all([proxy, dir, ...backends].map((one) => one[Symbol.asyncDispose]()))
    }
  }
  return { outcomes, requests, falseIdles }
}

function shapeOf(random: Random, backends: readonly Backend[]): Shape {
  const priorities = random.int(1, 3)
  const zones = random.int(1, 3)
  const isDivided = random.chance(0.4)
  const byLocality = random.chance(0.3)
  const groups = new Map<string, { priority: number; zone: number; endpoints: unknown[] }>()
  for (const [i, { port }] of backends.entries()) {
    // Each priority has one at least.
    const priority = i < priorities ? i : random.int(0, priorities - 1)
    const zone = random.int(1, zones)
    const key = `${priority}/${zone}`
    const group = groups.get(key) ?? { priority, zone, endpoints: [] }
    groups.set(key, group)
    group.endpoints.push(endpointOf(random, port, isDivided))
  }
  const factor = random.pick([undefined, undefined, 100, 120, 200])
  const isWeighted = random.chance(0.2)
  const set = {
    cluster_name: 'web',
    endpoints: [...groups.values()].map(({ priority, zone, endpoints }) => ({
      locality: { region: 'r', zone: `z${zone}` },
      priority,
      lb_endpoints: endpoints,
      ...(byLocality ? { load_balancing_weight: random.int(1, 9) } : {}),
    })),
    ...(factor === undefined && !isWeighted
      ? {}
      : {
          policy: {
            ...(factor === undefined ? {} : { overprovisioning_factor: factor }),
            ...(isWeighted ? { weighted_priority_health: true } : {}),
          },
        }),
  }
  const threshold = random.pick([undefined, undefined, 0, 0.4, 33.4, 66.7, 100])
  const policy = random.pick(['ROUND_ROBIN', 'LEAST_REQUEST', 'RANDOM', 'RING_HASH', 'MAGLEV'])
  const cluster = {
    lb_policy: policy,
    common_lb_config: {
      ...(threshold === undefined ? {} : { healthy_panic_threshold: { value: threshold } }),
      ...(byLocality ? { locality_weighted_lb_config: {} } : {}),
    },
    ...(isDivided ? { lb_subset_config: subsetsOf(random, byLocality) } : {}),
  }
  const hash = { hash_policy: [{ header: { header_name: 'x-key' } }] }
  const asks = random.pick([{ v: 'a' }, { v: 'b', s: '1' }, undefined])
  const route = {
    ...hash,
    ...(isDivided && asks !== undefined
      ? { metadata_match: { filter_metadata: { 'envoy.lb': asks } } }
      : {}),
  }
  const overruled = random.pick([undefined, undefined, undefined, 0, 100])
  // Asked last, so that a seed has the shape that it had.
  const common = { ...cluster.common_lb_config, ...panicOf(random, byLocality) }
  return {
    set,
    cluster: { ...cluster, common_lb_config: common },
    route,
    runtime:
      overruled === undefined ? undefined : { 'upstream.healthy_panic_threshold': overruled },
  }
}

/** Envoy takes no setting for zones beside weights of localities. */
function panicOf(random: Random, byLocality: boolean): Record<string, unknown> {
  const fails = !byLocality && random.chance(0.3)
  return fails ? { zone_aware_lb_config: { fail_traffic_on_panic: true } } : {}
}

function endpointOf(random: Random, port: number, isDivided: boolean): unknown {
  const status = random.weighted([
    ['HEALTHY', 6],
    ['UNHEALTHY', 2],
    ['DEGRADED', 1],
    ['DRAINING', 1],
    ['TIMEOUT', 1],
  ] as const)
  const labels = {
    ...(random.chance(0.8) ? { v: random.pick(['a', 'b']) } : {}),
    ...(random.chance(0.5) ? { s: random.pick(['1', '2']) } : {}),
  }
  return {
    endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } },
    health_status: status,
    ...(random.chance(0.3) ? { load_balancing_weight: random.int(1, 5) } : {}),
    ...(isDivided ? { metadata: { filter_metadata: { 'envoy.lb': labels } } } : {}),
  }
}

function subsetsOf(random: Random, byLocality: boolean): Record<string, unknown> {
  const fallback = (): string => random.pick(['NO_FALLBACK', 'ANY_ENDPOINT', 'DEFAULT_SUBSET'])
  const narrowing = random.chance(0.3)
  return {
    fallback_policy: fallback(),
    default_subset: random.pick([{ v: 'a' }, { s: '1' }, {}]),
    subset_selectors: [
      { keys: ['v'], ...(random.chance(0.5) ? { fallback_policy: fallback() } : {}) },
      {
        keys: ['v', 's'],
        ...(narrowing ? { fallback_policy: 'KEYS_SUBSET', fallback_keys_subset: ['v'] } : {}),
      },
    ],
    ...(random.chance(0.2) ? { panic_mode_any: true } : {}),
    ...(byLocality && random.chance(0.5)
      ? { locality_weight_aware: true, scale_locality_weight: true }
      : {}),
  }
}
