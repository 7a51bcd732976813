/** A stage for one engine test: two or more servers, one Envoy, and a provider that owns its endpoint set. */
import { envoy, fileEndpoints, type EnvoyOptions as ProviderOptions } from 'drainable/envoy'
import type { DrainableProvider, MemberRef, PresentReading } from 'drainable/provider'
import { startEnvoy, workDir, type RunningEnvoy } from './proxy.js'
import { startBackend, type Backend } from './backend.js'
import type { EnvoyOptions } from './bootstrap.js'
import { setOf, writeEds } from './sets.js'
import { systemClock } from '../../../src/provider/clock.js'

export interface Stage extends AsyncDisposable {
  readonly proxy: RunningEnvoy
  readonly lb: ReturnType<typeof envoy>
  readonly a: Backend
  readonly b: Backend
  readonly backends: readonly Backend[]
  readonly file: string
  readonly refOf: (backend: { readonly member: string }) => MemberRef
}

/** By file: the endpoints of cluster `web` are the servers, in order. */
export async function fileStage(
  path: string,
  options: {
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
  await writeEds(file, [(options.set ?? setOf)(ports)])
  const proxy = await startEnvoy({ path, eds: { file }, ...options.envoy })
  const lb = envoy({
    endpoints: fileEndpoints({ cluster: 'web', path: file }),
    admin: [proxy.admin],
    ...options.provider,
  })
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
