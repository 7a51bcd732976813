/**
 * One endpoint drained among 10,000, on a real Envoy: how long our side takes to make the response
 * (edit, encode, version), from the push to the acknowledgement, and to in force; and by file, from
 * the change to `version_text`. Beside it go-control-plane does the same with the same Envoy and the
 * same set, where Go is there to build it.
 *
 *   npm run bench envoy/publish
 */
import { envoy, fileEndpoints } from 'drainable/envoy'
import { grpcEndpoints } from 'drainable/envoy/grpc'
import { systemClock } from '../../src/provider/clock.js'
import { engines } from '../../test/support/engines.js'
import { startEnvoy, workDir } from '../../test/support/envoy/proxy.js'
import { startBackend } from '../../test/support/envoy/backend.js'
import { setOf, writeEds } from '../../test/support/envoy/sets.js'
import { until } from '../../test/support/wait.js'
import { benchGo } from './support/go-control-plane.js'
import { figures } from './support/figures.js'

const SIZE = 10_000
const ROUNDS = 12
const clock = systemClock
const engine = engines('envoy').at(-1)

if (engine === undefined) console.log('no Envoy to measure with: run "npm run engines"')
else {
  await using a = await startBackend()
  const set = many(a.port)
  const ref = { pool: 'web', member: a.member }
  const cluster = { common_lb_config: { healthy_panic_threshold: { value: 0 } } }

  console.log(`Envoy ${engine.version}, ${SIZE} endpoints in one set, ${ROUNDS} rounds`)
  {
    const sink = grpcEndpoints({ port: 0, initial: [set] })
    const admin: string[] = []
    await using lb = envoy({ endpoints: sink, admin: () => Promise.resolve(admin) })
    const { port } = await until(() => sink.address, 'a listening sink')
    await using proxy = await startEnvoy({
      path: engine.path,
      eds: { grpc: port, ads: true },
      cluster,
    })
    admin.push(proxy.admin)
    await until(() => sink.subscribers?.of('web')[0]?.state === 'acked', 'the first receipt')
    const encode: number[] = []
    const acked: number[] = []
    const loaded = await sink.load({ held: () => Promise.resolve([]) }, signal())
    let current = loaded.get('web')?.set
    for (let i = 0; i < ROUNDS && current !== undefined; i++) {
      const status = i % 2 === 0 ? 'DRAINING' : 'HEALTHY'
      const begun = performance.now()
      const next = current.withStatus(new Map([[a.member, status]]))
      const published = await sink.publish(next)
      encode.push(performance.now() - begun)
      const heard = new Promise<void>((resolve) => {
        const stop = sink.subscribers?.listen(() => {
          if (sink.subscribers?.of('web')[0]?.ackedAt(published.seq) === undefined) return
          stop?.()
          resolve()
        })
      })
      await heard
      acked.push(performance.now() - begun)
      current = next
    }
    console.log(`  edit + encode + version + write  ${figures(encode)}`)
    console.log(`  push to acknowledgement          ${figures(acked)}`)
    const forced: number[] = []
    for (let i = 0; i < 4; i++) {
      const begun = performance.now()
      const change =
        i % 2 === 0
          ? ({ kind: 'hold', ref, to: 'drain' } as const)
          : ({ kind: 'restore', ref, expect: 'drain', to: 'ready' } as const)
      await lb.apply([change], { signal: signal(), clock })
      await until(async () => {
        const { readings } = await lb.observe([ref], { signal: signal(), clock })
        return readings[0]?.scopes.every(({ inForce }) => inForce)
      }, 'it to be in force')
      forced.push(performance.now() - begun)
    }
    console.log(`  apply to seen in force (admin)   ${figures(forced)}`)
  }
  {
    await using dir = await workDir()
    const file = `${dir.path}/web.json`
    await writeEds(file, [set])
    await using proxy = await startEnvoy({ path: engine.path, eds: { file }, cluster })
    const sink = fileEndpoints({ cluster: 'web', path: file })
    await using lb = envoy({ endpoints: sink, admin: [proxy.admin] })
    const loaded = await sink.load({ held: () => Promise.resolve([]) }, signal())
    let current = loaded.get('web')?.set
    const written: number[] = []
    const applied: number[] = []
    for (let i = 0; i < ROUNDS && current !== undefined; i++) {
      const begun = performance.now()
      const next = current.withStatus(new Map([[a.member, i % 2 === 0 ? 'DRAINING' : 'HEALTHY']]))
      const { version } = await sink.publish(next)
      written.push(performance.now() - begun)
      await until(
        async () => (await proxy.get('/stats?filter=cluster.web.version_text')).includes(version),
        'the version',
      )
      applied.push(performance.now() - begun)
      current = next
    }
    await lb.close()
    console.log(`  file: edit, write, rename        ${figures(written)}`)
    console.log(`  file: change to version_text     ${figures(applied)}`)
  }
  const go = await benchGo(engine.path, SIZE, ROUNDS, a.port, cluster)
  console.log(`  go-control-plane: ${go}`)
}

function many(port: number): Record<string, unknown> {
  const set = setOf([port]) as { endpoints: { lb_endpoints: unknown[] }[] }
  for (let i = 1; i < SIZE; i++) {
    const address = `127.1.${Math.floor(i / 250)}.${i % 250}`
    set.endpoints[0]?.lb_endpoints.push({
      endpoint: { address: { socket_address: { address, port_value: 8_080 } } },
      health_status: 'HEALTHY',
      load_balancing_weight: 10,
    })
  }
  return set
}

function signal(): AbortSignal {
  return AbortSignal.timeout(30_000)
}
