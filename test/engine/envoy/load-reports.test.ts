import { describe, expect, test } from 'vitest'
import { startDrain, watch } from 'drainable'
import {
  callbackEndpoints,
  envoy,
  fileEndpoints,
  observedEndpoints,
  restEndpoints,
} from 'drainable/envoy'
import { grpcEndpoints, loadReports } from 'drainable/envoy/grpc'
import { engines } from '../../support/engines.js'
import { startBackend } from '../../support/envoy/backend.js'
import { ask } from '../../support/envoy/client.js'
import { startEnvoy, workDir } from '../../support/envoy/proxy.js'
import { setOf, writeEds } from '../../support/envoy/sets.js'
import { delay, until } from '../../support/wait.js'

const NO_PANIC = { common_lb_config: { healthy_panic_threshold: { value: 0 } } }

/** A port that load reports are taken at before the provider is there. */
async function opened() {
  const loads = loadReports({ port: 0, interval: '100ms' })
  await loads.open(() => [])
  return { loads, port: loads.address?.port ?? 0 }
}

describe.each(engines('envoy'))('load reports beside a sink, Envoy $version', ({ path }) => {
  test('they are enough beside REST, without an admin API', async () => {
    await using a = await startBackend()
    await using b = await startBackend()
    const { loads, port } = await opened()
    const sink = restEndpoints({ port: 0, initial: [setOf([a.port, b.port])] })
    await using lb = envoy({
      endpoints: sink,
      loads,
      expect: 1,
      connectTimeout: '500ms',
      panicThreshold: 0,
    })
    const address = await until(() => sink.address, 'a listening sink')
    await using proxy = await startEnvoy({
      path,
      eds: { rest: address.port },
      loads: port,
      cluster: NO_PANIC,
    })
    const held: Promise<unknown>[] = []
    while (a.held === 0) {
      held.push(ask(proxy.http, '/hold').catch(() => undefined))
      await delay(20)
    }
    const run = startDrain(lb, { pool: 'web', member: a.member }, { timeout: '60s' })
    await until(() => run.report().members[0]?.phase === 'draining', 'a drain')
    const inFlight = () =>
      run.why().some(({ code }) => code === 'in-flight' || code === 'long-lived')
    await until(inFlight, 'work in a report')
    a.release()
    b.release()
    await Promise.all(held)
    expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    await run.close()
  })

  test('beside a file and beside an observer: an unlisted proxy is found', async () => {
    await using dir = await workDir()
    await using a = await startBackend()
    await using b = await startBackend()
    const file = `${dir.path}/web.json`
    await writeEds(file, [setOf([a.port, b.port])])
    const ref = { pool: 'web', member: a.member }
    const [one, other] = [await opened(), await opened()]
    await using listed = await startEnvoy({ path, eds: { file }, id: 'listed', loads: one.port })
    await using first = await startEnvoy({ path, eds: { file }, id: 'first', loads: one.port })
    await using second = await startEnvoy({ path, eds: { file }, id: 'second', loads: other.port })
    const admin = [listed.admin]
    await using look = envoy({ endpoints: observedEndpoints(), admin, loads: other.loads })
    await using lb = envoy({
      endpoints: fileEndpoints({ cluster: 'web', path: file }),
      admin: () => Promise.resolve(admin),
      loads: one.loads,
    })
    await using seen = watch(look, ref)
    const run = startDrain(lb, ref, { timeout: '60s' })
    const names = (run: { why(): readonly { readonly scope?: string }[] }, scope: string) =>
      until(() => run.why().some((why) => why.scope === scope), `the unread ${scope}`)
    await names(run, 'first')
    await names(seen, 'second')
    expect(run.report().members[0]?.phase).not.toBe('idle')
    admin.push(first.admin)
    expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    expect(seen.report().members[0]?.phase).not.toBe('idle')
    await run.close()
    expect(second.pid).toBeGreaterThan(0)
  })

  test('beside gRPC on another port: the sink goes by these alone', async () => {
    await using a = await startBackend()
    await using b = await startBackend()
    const { loads, port } = await opened()
    const sink = grpcEndpoints({ port: 0, initial: [setOf([a.port, b.port])] })
    await using lb = envoy({
      endpoints: sink,
      loads,
      expect: 1,
      connectTimeout: '100ms',
      panicThreshold: 0,
    })
    const address = await until(() => sink.address, 'a listening sink')
    await using proxy = await startEnvoy({
      path,
      eds: { grpc: address.port },
      loads: port,
      cluster: NO_PANIC,
    })
    const run = startDrain(lb, { pool: 'web', member: a.member }, { timeout: '60s' })
    expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    await run.close()
    expect(proxy.pid).toBeGreaterThan(0)
  })

  test('beside a callback: an unlisted proxy is found', async () => {
    await using dir = await workDir()
    await using a = await startBackend()
    await using b = await startBackend()
    const file = `${dir.path}/web.json`
    let held: unknown = setOf([a.port, b.port])
    let version = 1
    const publish = async (set: unknown) => {
      await writeEds(file, [set], String(++version))
      held = set
    }
    await publish(held)
    const { loads, port } = await opened()
    await using listed = await startEnvoy({ path, eds: { file }, id: 'listed', loads: port })
    await using other = await startEnvoy({ path, eds: { file }, id: 'other', loads: port })
    const admin = [listed.admin]
    await using lb = envoy({
      endpoints: callbackEndpoints({ load: () => Promise.resolve([held]), publish }),
      admin: () => Promise.resolve(admin),
      loads,
    })
    const run = startDrain(lb, { pool: 'web', member: a.member }, { timeout: '60s' })
    await until(() => run.why().some(({ scope }) => scope === 'other'), 'the unread other')
    expect(run.report().members[0]?.phase).not.toBe('idle')
    admin.push(other.admin)
    expect((await run.done).members[0]).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    await run.close()
  })
})
