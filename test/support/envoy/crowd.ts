/** Many real Envoys at once, by every protocol of the gRPC server: no member may be idle while one of them has work. */
import { startDrain } from 'drainable'
import { envoy } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import type { Engine } from '../engines.js'
import { until } from '../wait.js'
import { startBackend } from './backend.js'
import { ask } from './client.js'
import { startEnvoy } from './proxy.js'
import { setOf } from './sets.js'

const SERVERS = 3
const LONG = 120_000

/** What came of a drain over so many proxies. */
export interface CrowdRun {
  readonly proxies: number
  /** Scopes in the last sample of the proof. */
  readonly scopes: number
  /** From the end of the last request to idle, ms. */
  readonly took: number
  readonly faults: readonly string[]
}

/** One drain, with a request held on the last proxy until all others are empty. */
export async function drainCrowd({ path }: Engine, count: number): Promise<CrowdRun> {
  const backends = await Promise.all(Array.from({ length: SERVERS }, startBackend))
  const [a] = backends
  if (a === undefined) throw new Error('no server')
  const sink = grpcEndpoints({ port: 0, initial: [setOf(backends.map(({ port }) => port))] })
  const admin: string[] = []
  await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin), expect: count })
  const { port } = await until(() => sink.address, 'a listening sink')
  const proxies = []
  const faults: string[] = []
  try {
    // One after another: thirty that start at once take each other's time.
    for (let i = 0; i < count; i += 1) {
      const eds = { grpc: port, delta: i % 2 === 1, ads: i % 3 === 0 }
      proxies.push(await startEnvoy({ path, eds, id: `envoy-${i + 1}` }))
    }
    admin.push(...proxies.map((proxy) => proxy.admin))
    const last = proxies.at(-1)
    if (last === undefined) throw new Error('no proxy')
    const held: Promise<unknown>[] = []
    while (a.held === 0) {
      held.push(ask(last.http, '/hold').catch(() => undefined))
      await until(() => backends.some((one) => one.held >= held.length / SERVERS), 'a request')
    }
    const ref = { pool: 'web', member: a.member }
    await using run = startDrain(lb, ref, { timeout: LONG })
    run.on('idle', () => {
      if (a.held > 0) faults.push(`idle with ${a.held} at work`)
    })
    const only = () => {
      const why = run.why()
      const busy = why.filter(({ code }) => code === 'in-flight' || code === 'long-lived')
      return busy.length > 0 && why.every(({ scope }) => scope === last.admin)
    }
    await until(only, 'one proxy to wait for', LONG)
    const releasedAt = performance.now()
    for (const backend of backends) backend.release()
    await Promise.all(held)
    const [member] = (await run.done).members
    const took = performance.now() - releasedAt
    if (member?.outcome !== 'idle' || !member.verifiedIdle)
      faults.push(`it ended ${member?.outcome}`)
    const before = a.requests.length
    for (const { http } of proxies) for (let i = 0; i < 5; i += 1) await ask(http)
    if (a.requests.length > before) faults.push(`${a.requests.length - before} came after idle`)
    const scopes = member?.proof?.samples.at(-1)?.scopes.length ?? 0
    return { proxies: count, scopes, took, faults }
  } finally {
    for (const backend of backends) backend.release()
    await lb.close()
    await Promise.all([...proxies, ...backends].map((one) => one[Symbol.asyncDispose]()))
  }
}
