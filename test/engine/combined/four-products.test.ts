/** One server behind HAProxy, Envoy, BIG-IP and Citrix ADC at once; the first two are real. */
import { join } from 'node:path'
import { combineProviders, ready, startDrain, type Drain } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import { envoy, fileEndpoints } from 'drainable/envoy'
import { f5Bigip } from 'drainable/f5-bigip'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake as startCitrix } from 'drainable/testing/citrix-adc'
import { startFake as startBigip } from 'drainable/testing/f5-bigip'
import { describe, it } from 'vitest'
import { startEnvoy, workDir } from '../../support/envoy/proxy.js'
import { writeEds } from '../../support/envoy/sets.js'
import { engines, type Engine } from '../../support/engines.js'
import { FleetServer } from '../../support/fleet.js'
import { freePort, Haproxy, until } from '../../support/haproxy.js'
import { Tunnel } from '../../support/haproxy-traffic.js'

const LIMIT = 60_000
/** The one that is drained is the first. */
const ADDRESSES = ['127.0.0.41', '127.0.0.42'] as const
const [ADDRESS] = ADDRESSES

async function startAll(stack: AsyncDisposableStack, haproxy: Engine, proxy: Engine) {
  const port = await freePort()
  for (const address of ADDRESSES) stack.use(await FleetServer.start(address, port))
  const config = (given: (name: string) => number): string => `
frontend f_web
  bind 127.0.0.1:${given('web')}
  default_backend web
backend web
${ADDRESSES.map((address, n) => `  server s${n + 1} ${address}:${port}`).join('\n')}`
  const edge = stack.use(await Haproxy.start({ engine: haproxy, config }))
  const file = join(stack.use(await workDir()).path, 'web.json')
  const endpoints = ADDRESSES.map((address) => ({
    endpoint: { address: { socket_address: { address, port_value: port } } },
  }))
  await writeEds(file, [{ cluster_name: 'web', endpoints: [{ lb_endpoints: endpoints }] }])
  const mesh = stack.use(await startEnvoy({ path: proxy.path, eds: { file } }))
  const names = ADDRESSES.map((address) => `${address}:${port}`)
  const bigip = stack.use(await startBigip({ pools: { web: names } }))
  const adc = stack.use(await startCitrix({ tick: 20, pools: { web: names } }))
  const all = combineProviders({
    edge: haproxyRuntime({ socket: edge.socket, master: edge.master }),
    mesh: envoy({ endpoints: fileEndpoints({ cluster: 'web', path: file }), admin: [mesh.admin] }),
    bigip: f5Bigip({
      url: bigip.urls,
      username: bigip.username,
      password: bigip.password,
      tls: { ca: bigip.ca },
      freshness: '10ms',
      minInterval: '20ms',
    }),
    adc: citrixAdc({
      url: adc.urls,
      username: adc.username,
      password: adc.password,
      tls: { ca: adc.ca },
      freshness: '50ms',
    }),
  })
  stack.use(all)
  return { edge, mesh, bigip, adc, all, port, name: names[0] ?? '' }
}

/** A connection through a balancer to the server that is drained. */
async function tunnelTo(
  stack: AsyncDisposableStack,
  front: number,
  isThere: () => Promise<boolean>,
): Promise<Tunnel> {
  for (;;) {
    const tunnel = await Tunnel.websocket(front)
    if (await isThere()) {
      stack.use(tunnel)
      return tunnel
    }
    await tunnel[Symbol.asyncDispose]()
  }
}

/** Balancers that something is still to be waited for on. */
function waitsFor(run: Drain): string {
  const keys = run.why().map(({ ref }) => ref.balancer ?? '')
  return [...new Set(keys)].sort().join(' ')
}

const [haproxy] = engines('haproxy', '3.2')
const [proxy] = engines('envoy', '1.40')

describe.skipIf(haproxy === undefined || proxy === undefined)(
  'one server behind four products',
  () => {
    it('is idle only when every product is idle, one of them frozen', async ({ expect }) => {
      if (haproxy === undefined || proxy === undefined) return
      await using stack = new AsyncDisposableStack()
      const { edge, mesh, bigip, adc, all, name } = await startAll(stack, haproxy, proxy)
      const onEdge = await tunnelTo(
        stack,
        edge.port('web'),
        async () => (await edge.stat('web', 's1', 'scur')) !== '0',
      )
      const bound = `${name}::rq_active::1`
      const onMesh = await tunnelTo(stack, mesh.http, async () =>
        (await mesh.get('/clusters')).includes(bound),
      )
      const offBigip = await bigip.occupy({ pool: 'web', member: name })
      const offAdc = await adc.occupy({ pool: 'web', member: name })

      const run = startDrain(all, { address: ADDRESS }, { timeout: '10m', settle: '200ms' })
      let hasEnded = false
      void run.done.then(() => (hasEnded = true))
      await until(() => waitsFor(run) === 'adc bigip edge mesh', 'work on each', LIMIT)
      await run.inForce
      await offAdc()
      await until(() => waitsFor(run) === 'bigip edge mesh', 'idle on the ADC', LIMIT)
      await offBigip()
      await until(() => waitsFor(run) === 'edge mesh', 'idle on the BIG-IP', LIMIT)
      await onMesh[Symbol.asyncDispose]()
      await until(() => waitsFor(run) === 'edge', 'idle on the Envoy', LIMIT)
      expect(hasEnded).toBe(false)

      // Its work ends while it stands still: what can't be read is no zero.
      const pid = await edge.signal('SIGSTOP')
      await onEdge[Symbol.asyncDispose]()
      await until(() => run.why().some(({ code }) => code === 'unreadable'), 'unread', LIMIT)
      expect(run.report().members.find(({ ref }) => ref.balancer === 'edge')?.phase).toBe(
        'draining',
      )
      expect(hasEnded).toBe(false)
      process.kill(pid, 'SIGCONT')

      const report = await run.done
      expect(report.outcome).toBe('idle')
      expect(
        report.members.map(({ ref, verifiedIdle }) => `${ref.balancer} ${verifiedIdle}`).sort(),
      ).toEqual(['adc true', 'bigip true', 'edge true', 'mesh true'])
      await run.restore()
      expect(await edge.stat('web', 's1', 'status')).toMatch(/^(UP|no check)$/)
    })

    it('is idle after a process behind it was replaced', async ({ expect }) => {
      if (haproxy === undefined || proxy === undefined) return
      await using stack = new AsyncDisposableStack()
      const { edge, mesh, bigip, all, name } = await startAll(stack, haproxy, proxy)
      const offBigip = await bigip.occupy({ pool: 'web', member: name })
      const run = startDrain(all, { address: ADDRESS }, { timeout: '10m', settle: '200ms' })
      let hasEnded = false
      void run.done.then(() => (hasEnded = true))
      await until(() => waitsFor(run) === 'bigip', 'idle on all but the BIG-IP', LIMIT)
      const before = run
        .report()
        .members.flatMap(({ ref, lastReading: last }) =>
          ref.balancer !== 'bigip' && last?.present === true
            ? last.scopes.map(({ incarnation }) => incarnation)
            : [],
        )
      await mesh.restart()
      await edge.reload()
      expect(hasEnded).toBe(false)
      await offBigip()
      const report = await run.done
      expect(report.outcome).toBe('idle')
      const after = report.members.flatMap(({ ref, proof }) =>
        ref.balancer === 'mesh' || ref.balancer === 'edge'
          ? (proof?.samples.flatMap(({ scopes }) => scopes) ?? [])
          : [],
      )
      expect(after.length).toBeGreaterThan(0)
      for (const { incarnation } of after) expect(before).not.toContain(incarnation)
      // Nothing of it is open on the new processes, and all of it is afterwards.
      expect(await edge.stat('web', 's1', 'status')).toMatch(/^MAINT/)
      await run.release()
      await ready(all, { address: ADDRESS }, { timeout: '60s' })
      expect(await edge.stat('web', 's1', 'status')).toMatch(/^(UP|no check)$/)
    })
  },
)
