/** A stage for one engine test: two or more servers, one Envoy, and a provider that owns its endpoint set. */
import {
  callbackEndpoints,
  envoy,
  fileEndpoints,
  restEndpoints,
  type EndpointSink,
  type EnvoyOptions as ProviderOptions,
} from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import type { DrainableProvider, MemberRef, PresentReading } from 'drainable/provider'
import { startEnvoy, workDir, type RunningEnvoy } from './proxy.js'
import { startBackend, type Backend } from './backend.js'
import type { EdsSource, EnvoyOptions } from './bootstrap.js'
import { readFile } from 'node:fs/promises'
import { setOf, writeEds } from './sets.js'
import { systemClock } from '../../../src/provider/clock.js'
import { until } from '../wait.js'

/** How the set reaches the proxy. With a callback, the control plane of another client writes the file. */
export const WAYS = ['file', 'callback', 'REST', 'ADS'] as const
export type Way = (typeof WAYS)[number]

export interface Stage extends AsyncDisposable {
  readonly proxy: RunningEnvoy
  readonly lb: ReturnType<typeof envoy>
  readonly a: Backend
  readonly b: Backend
  readonly backends: readonly Backend[]
  readonly file: string
  readonly refOf: (backend: { readonly member: string }) => MemberRef
}

/** The endpoints of cluster `web` are the servers, in order: by file, if nothing else is asked for. */
export async function fileStage(
  path: string,
  options: {
    readonly by?: Way
    readonly servers?: number
    readonly extra?: readonly number[]
    readonly envoy?: Partial<EnvoyOptions>
    readonly provider?: Partial<ProviderOptions>
    /** The first set, where it has more than addresses. */
    readonly set?: (ports: readonly number[]) => Record<string, unknown>
  } = {},
): Promise<Stage> {
  const dir = await workDir()
  const file = `${dir.path}/web.json`
  const backends = await Promise.all(Array.from({ length: options.servers ?? 2 }, startBackend))
  const ports = [...backends.map(({ port }) => port), ...(options.extra ?? [])]
  const set = (options.set ?? setOf)(ports)
  await writeEds(file, [set])
  const { endpoints, address } = sinkOf(options.by ?? 'file', file, set)
  const admin: string[] = []
  const served =
    address && envoy({ endpoints, admin: () => Promise.resolve(admin), ...options.provider })
  const eds = (await address?.()) ?? { file }
  const proxy = await startEnvoy({ path, eds, ...options.envoy })
  admin.push(proxy.admin)
  const lb = served ?? envoy({ endpoints, admin, ...options.provider })
  const [a, b] = backends
  if (a === undefined || b === undefined) throw new Error('a stage has two servers')
  return {
    proxy,
    lb,
    a,
    b,
    backends,
    file,
    refOf: ({ member }) => ({ pool: 'web', member }),
    [Symbol.asyncDispose]: async () => {
      await lb.close()
      await proxy[Symbol.asyncDispose]()
      await Promise.all(backends.map((backend) => backend[Symbol.asyncDispose]()))
      await dir[Symbol.asyncDispose]()
    },
  }
}

/** @returns `address`: where the proxy asks for its set, of a sink that serves it once a provider has opened it */
function sinkOf(
  by: Way,
  file: string,
  set: unknown,
): { readonly endpoints: EndpointSink; readonly address?: () => Promise<EdsSource> } {
  if (by === 'file') return { endpoints: fileEndpoints({ cluster: 'web', path: file }) }
  if (by === 'callback') {
    const load = async (): Promise<unknown> => JSON.parse(await readFile(file, 'utf8'))
    const publish = (next: unknown): Promise<void> => writeEds(file, [next], String(Math.random()))
    return { endpoints: callbackEndpoints({ instance: file, load, publish }) }
  }
  const serve = by === 'REST' ? restEndpoints : grpcEndpoints
  const endpoints = serve({ port: 0, initial: [set] })
  const address = async (): Promise<EdsSource> => {
    const { port } = await until(() => endpoints.address, 'a listening sink')
    return by === 'REST' ? { rest: port } : { grpc: port, ads: true }
  }
  return { endpoints, address }
}

/** One look at one member. */
export async function look(lb: DrainableProvider, ref: MemberRef): Promise<PresentReading> {
  const clock = systemClock
  const { readings } = await lb.observe([ref], { signal: AbortSignal.timeout(10_000), clock })
  const [reading] = readings
  if (reading?.present !== true) throw new Error(`${ref.member} is not there`)
  return reading
}

/** Active and queued work over all scopes. */
export async function workOf(lb: DrainableProvider, ref: MemberRef): Promise<[number, number]> {
  const { scopes } = await look(lb, ref)
  return [
    scopes.reduce((sum, { active }) => sum + active, 0),
    scopes.reduce((sum, { queued }) => sum + queued, 0),
  ]
}
