/**
 * How long after the end of the last request idle is said: by the admin API and by load reports, for
 * one Envoy and for ten. The request outlasts `settle`, so the quiet time costs nothing.
 *
 *   npm run bench envoy/idle
 */
import { drain } from 'drainable'
import { envoy } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { engines } from '../../test/support/engines.js'
import { startEnvoy } from '../../test/support/envoy/proxy.js'
import { startBackend } from '../../test/support/envoy/backend.js'
import { ask } from '../../test/support/envoy/client.js'
import { setOf } from '../../test/support/envoy/sets.js'
import { delay, until } from '../../test/support/wait.js'
import { figures } from './support/figures.js'

const ROUNDS = 5
const HELD = 2_500
const engine = engines('envoy').at(-1)

if (engine === undefined) console.log('no Envoy to measure with: run "npm run engines"')
else {
  console.log(`Envoy ${engine.version}, ${ROUNDS} drains each, the last request ends ${HELD} ms in`)
  for (const count of [1, 10]) {
    for (const probe of ['admin', 'loads'] as const) {
      const late = await measure(engine.path, count, probe)
      const proxies = count === 1 ? ' 1 proxy  ' : `${count} proxies`
      console.log(
        `  ${proxies}, by ${probe === 'admin' ? 'the admin API' : 'load reports '}: ${figures(late)}`,
      )
    }
  }
}

async function measure(path: string, count: number, probe: 'admin' | 'loads'): Promise<number[]> {
  await using a = await startBackend()
  await using b = await startBackend()
  const sink = grpcEndpoints({ port: 0, initial: [setOf([a.port, b.port])], loadInterval: '100ms' })
  const admin: string[] = []
  await using lb = envoy({
    endpoints: sink,
    expect: count,
    connectTimeout: '500ms',
    ...(probe === 'admin' ? { admin: () => Promise.resolve(admin) } : {}),
  })
  const { port } = await until(() => sink.address, 'a listening sink')
  const proxies = await Promise.all(
    Array.from({ length: count }, (_, i) =>
      startEnvoy({ path, eds: { grpc: port }, loads: port, id: `envoy-${i + 1}` }),
    ),
  )
  admin.push(...proxies.map((proxy) => proxy.admin))
  const ref = { pool: 'web', member: a.member }
  const late: number[] = []
  try {
    for (let i = 0; i < ROUNDS; i++) {
      while (a.held === 0) {
        for (const proxy of proxies) void ask(proxy.http, '/hold').catch(() => undefined)
        await delay(100)
      }
      let endedAt = 0
      setTimeout(() => {
        a.release()
        endedAt = performance.now()
      }, HELD)
      const { outcome } = await drain(lb, ref, { timeout: '60s' })
      late.push(performance.now() - endedAt)
      if (outcome !== 'idle') throw new Error(outcome)
      b.release()
      const clock = { now: () => performance.now(), setTimeout: () => () => undefined }
      const back = { kind: 'restore', ref, expect: 'drain', to: 'ready' } as const
      await lb.apply([back], { signal: AbortSignal.timeout(10_000), clock })
      await delay(1_200)
    }
  } finally {
    for (const proxy of proxies) await proxy[Symbol.asyncDispose]()
  }
  return late
}
