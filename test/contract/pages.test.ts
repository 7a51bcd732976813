/** The programs that stand on the other pages of the docs are run, as they stand there, on stand-ins of the balancers. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { drain, reconcile, type DrainableProvider, type Reconciler } from 'drainable'
import { callContext } from 'drainable/provider'
import { fakeProvider } from 'drainable/testing'
import { startFake as startEnvoy } from 'drainable/testing/envoy'
import { startFake as startBigip } from 'drainable/testing/f5-bigip'
import { startFake as startDataplane } from 'drainable/testing/haproxy-dataplane'
import { startFake as startHaproxy } from 'drainable/testing/haproxy-runtime'
import { describe, expect, it, vi } from 'vitest'
import { service, SERVICES, slice as kubeSlice, SLICES } from '../support/kube-api/objects.js'
import { FakeKube } from '../support/kube-api/server.js'
import { PagePrograms, quoted, tlsOf } from '../support/page-programs.js'

/** Run by tests of their own: recipes one by one, and the pages of some products. */
const OTHERS = /docs\/(tasks|after-a-crash|fixed-timers|questions)|adapters\/(f5|citrix|envoy)/

/** What is run by another test, or can't be run alone. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'docs/adapters/haproxy-dataplane.md 2': 'test/engine/haproxy-dataplane/runtime.test.ts',
  'docs/adapters/your-own.md 1': 'examples/elb, test/contract/elb-example.test.ts',
  'docs/adapters/your-own.md 2': 'examples/elb, test/contract/elb-example.test.ts',
  'docs/adapters/your-own.md 3': 'examples/elb, test/contract/elb-example.test.ts',
  'docs/change-an-adapter.md 1':
    'a test of Vitest, which does not run inside this runner; test/unit/haproxy-runtime',
  'docs/testing.md 1': 'node:test, which does not run inside this runner; test/unit/testing',
  'docs/testing.md 5': 'the contract suite, with a balancer of the reader; test/contract',
}

function kubeNode(address: string, labels: Readonly<Record<string, string>>): unknown {
  const addresses = [{ type: 'InternalIP', address }]
  const conditions = [{ type: 'Ready', status: 'True' }]
  return { metadata: { name: address, labels }, status: { addresses, conditions } }
}

type Sync = (loop: Reconciler, pool: string, spec: object, nodes: readonly unknown[]) => void

const programs = new PagePrograms((path) => !OTHERS.test(path), ELSEWHERE)

describe('the programs on the pages', () => {
  it.concurrent.each([
    ['README.md 1', { install: () => Promise.resolve() }],
    ['docs/adapters/haproxy-runtime.md 1', {}],
  ])('%s', async (name, given) => {
    await using fake = await startHaproxy({ pools: { web: ['web1', 'web2'] }, master: true })
    const places = {
      '/run/haproxy/admin.sock': fake.socket as string,
      '/run/haproxy-master.sock': fake.master as string,
    }
    await programs.run(name, places, given)
    const sent = fake.requests.map(({ line }) => line).join('\n')
    expect(sent).toContain('set server web/web1 state drain')
    expect(fake.adminMask({ pool: 'web', member: 'web1' })).toBe(0)
  })

  it.concurrent('docs/telemetry.md 1', async () => {
    await programs.run('docs/telemetry.md 1', {})
    await using lb = fakeProvider({ pools: { web: ['web1', 'web2'] }, instance: 'told' })
    await drain(lb, { pool: 'web', member: 'web1' }, { settle: '0s' })
    expect(programs.said.join('\n')).toMatch(/^told web\/web1: hold applied in \d+ ms$/m)
  })

  it.concurrent('docs/adapters/haproxy-dataplane.md 1', async () => {
    await using fake = await startDataplane({
      pools: { web: ['web1', 'web2'] },
      username: 'drainer',
      password: 'secret',
    })
    await programs.run('docs/adapters/haproxy-dataplane.md 1', {
      'https://lb1.example:5555': fake.url,
      "  tls: { ca: '/etc/ssl/lb.pem' },\n": '',
      "process.env['DATAPLANE_PASSWORD'] ?? ''": "'secret'",
    })
    const changes = fake.requests.filter(({ line }) => /^PUT .*servers\/web1/.test(line))
    expect(changes.length).toBeGreaterThan(1)
  })

  it.concurrent('docs/drain-everywhere.md 1', async () => {
    const servers = ['10.0.0.1', '10.0.0.2'].map((address, n) => ({
      name: `web${n + 1}`,
      address,
      port: 8080,
    }))
    await using stack = new AsyncDisposableStack()
    const edge = async (): Promise<Awaited<ReturnType<typeof startHaproxy>>> =>
      stack.use(await startHaproxy({ pools: { web: servers }, master: true }))
    const [a, b] = [await edge(), await edge()]
    const bigip = stack.use(
      await startBigip({
        pair: true,
        pools: { web: ['10.0.0.1:8080', '10.0.0.2:8080'] },
        username: 'drainer',
      }),
    )
    const file = await programs.assignment('mesh', ['10.0.0.1:8080', '10.0.0.2:8080'])
    const mesh = stack.use(await startEnvoy({ eds: { file } }))
    const { replace } = await programs.run('docs/drain-everywhere.md 1', {
      '/run/edge-a/admin.sock': a.socket as string,
      '/run/edge-a/master.sock': a.master as string,
      '/run/edge-b/admin.sock': b.socket as string,
      '/run/edge-b/master.sock': b.master as string,
      "['https://bigip1.example', 'https://bigip2.example']": `${quoted(bigip.urls)}, tls: ${tlsOf(bigip.ca)}`,
      '/etc/envoy/eds/web.json': file,
      'http://127.0.0.1:9901': mesh.url,
    })
    const web1 = { pool: 'web', member: 'web1' }
    const seen: unknown[] = []
    await (replace as unknown as Replace)('10.0.0.1', bigip.password, async () => {
      seen.push(a.adminMask(web1), b.adminMask(web1), await readFile(file, 'utf8'))
    })
    expect(seen.slice(0, 2).every((mask) => mask !== 0)).toBe(true)
    expect(seen[2]).toContain('DRAINING')
    expect([a.adminMask(web1), b.adminMask(web1)]).toEqual([0, 0])
    expect(await readFile(file, 'utf8')).not.toContain('DRAINING')
  })

  it.concurrent('docs/endpoint-conditions.md 1', async () => {
    const lb = fakeProvider({ pools: { web: ['web1', 'web2'] } })
    const { dryRun } = await programs.run('docs/endpoint-conditions.md 1', {})
    const text = await (dryRun as unknown as DryRun)(lb, [slice()], [], callContext())
    expect(text).toContain('ctl-10.0.0.9:8080')
    expect(text).toMatch(/leave +web\/web1 .*foreign/)
  })

  it.concurrent('docs/endpoint-conditions.md 2', async () => {
    const lb = fakeProvider({ pools: { web: ['web1'] } })
    const { step } = await programs.run('docs/endpoint-conditions.md 2', {})
    const member = { pool: 'web', member: 'ctl-1' }
    const one = { ...member, address: '10.0.0.9', port: 8080, state: 'serve' }
    await (step as unknown as Step)(lb, [one], new AbortController().signal)
    expect(lb.state(member)).toBe('ready')
  })

  it.concurrent('docs/your-own-controller.md 1', async () => {
    const lb = fakeProvider({ pools: { web: ['web1'] } })
    const stop = new AbortController()
    const tickets = join(programs.folder, 'controller')
    const { run: loop } = await programs.run('docs/your-own-controller.md 1', {
      '/var/lib/controller': tickets,
    })
    const looping = (loop as unknown as Loop)(
      lb,
      (changed) => {
        changed([], false) // not whole yet
        changed([slice()], true)
      },
      stop.signal,
    )
    const added = { pool: 'web', member: 'ctl-10.0.0.9' }
    await vi.waitFor(() => expect(lb.state(added)).toBe('ready'), 10_000)
    stop.abort()
    await looping.catch(() => undefined)
    expect(lb.state({ pool: 'web', member: 'web1' })).toBe('ready')
  })

  it.concurrent('docs/kubernetes.md 1', async () => {
    const file = await programs.assignment('kube', ['10.0.0.1:8080', '10.0.0.2:8080'])
    await using fake = await startEnvoy({ eds: { file } })
    await using kube = await FakeKube.start()
    kube.put(SERVICES, service('web'))
    kube.put(SLICES, kubeSlice({ '10.0.0.1': 'TTF', '10.0.0.9': 'TTF' }))
    const stop = new AbortController()
    const { run } = await programs.run('docs/kubernetes.md 1', {
      '/etc/envoy/eds/web.json': file,
      'http://127.0.0.1:9901': fake.url,
    })
    const running = (run as unknown as FollowAlone)(kube.config, stop.signal)
    const set = (): Promise<string> => readFile(file, 'utf8')
    await vi.waitFor(async () => expect(await set()).toContain('10.0.0.9'), 10_000)
    await vi.waitFor(async () => expect(await set()).toContain('DRAINING'), 10_000)
    stop.abort()
    await running.catch(() => undefined)
  })

  it.concurrent('docs/kubernetes.md 2', async () => {
    await using kube = await FakeKube.start()
    for (const name of ['web', 'api']) kube.put(SERVICES, service(name))
    kube.put(SLICES, kubeSlice({ '10.0.0.9': 'TTF' }))
    const api = kubeSlice({ '10.0.0.8': 'TTF' }, { of: 'api' })
    kube.put(SLICES, { ...api, ports: [{ name: 'grpc', port: 9090, protocol: 'TCP' }] } as never)
    const lb = fakeProvider({ pools: { web: ['web1'], api: ['api1'] } })
    const stop = new AbortController()
    const { run } = await programs.run('docs/kubernetes.md 2', {})
    const running = (run as unknown as Follow)(lb, kube.config, stop.signal)
    const added = { pool: 'api', member: 'pod-p-10-0-0-8' }
    await vi.waitFor(() => expect(lb.state(added)).toBe('ready'), 10_000)
    stop.abort()
    await running.catch(() => undefined)
    expect(lb.state({ pool: 'web', member: 'web1' })).toBe('ready')
  })

  it.concurrent('docs/from-fixed-timer-to-drain.md 1', async () => {
    const { sync } = await programs.run('docs/from-fixed-timer-to-drain.md 1', {})
    const lb = fakeProvider({ pools: { web: ['other'] } })
    await using loop = reconcile(lb, { pools: ['web'], settle: '10ms' })
    const spec = {
      nodeSelector: 'lb=on',
      port: 80,
      drain: { enabled: true, timeoutSeconds: 30 },
    }
    const states = async (...nodes: readonly unknown[]): Promise<readonly unknown[]> => {
      ;(sync as unknown as Sync)(loop, 'web', spec, nodes)
      await loop.settled()
      const members = ['10.0.0.1:80', '10.0.0.2:80', 'other']
      return members.map((member) => lb.state({ pool: 'web', member }))
    }
    const first = kubeNode('10.0.0.1', { lb: 'on' })
    const labelled = kubeNode('10.0.0.2', { lb: 'on' })
    expect(await states(first, labelled)).toEqual(['ready', 'ready', 'ready'])
    expect(await states(first, kubeNode('10.0.0.2', {}))).toEqual(['ready', 'gone', 'ready'])
  })

  it.concurrent('docs/several-controllers.md 1', async () => {
    const lb = fakeProvider({ pools: { web: ['web1', 'web2'] } })
    const { start } = await programs.run('docs/several-controllers.md 1', {})
    const client = { eval: () => Promise.resolve([1, '7']) }
    const loop = (start as unknown as Start)(lb, client, new Map())
    await using held = loop
    const web = ['web1', 'web2'].map((member) => ({ pool: 'web', member, state: 'serve' }))
    held.set(web)
    await held.settled()
    expect(programs.said).toContain('we lead')
  })

  it.concurrent('docs/testing.md 2', async () => {
    await programs.run('docs/testing.md 2', {})
    expect(programs.said).toContain('0')
  })

  it.concurrent('docs/testing.md 3', async () => {
    await programs.run('docs/testing.md 3', {})
    expect(programs.said).toContain('idle')
  })

  it.concurrent('docs/testing.md 4', async () => {
    await programs.run('docs/testing.md 4', {})
    expect(programs.said).toContain('hello')
  })
})

type Replace = (address: string, password: string, work: () => Promise<void>) => Promise<void>
type DryRun = (...args: unknown[]) => Promise<string>
type Step = (lb: DrainableProvider, desired: unknown, signal: AbortSignal) => Promise<void>
type FollowAlone = (config: unknown, signal: AbortSignal) => Promise<void>
type Follow = (lb: DrainableProvider, config: unknown, signal: AbortSignal) => Promise<void>
type Loop = (
  lb: DrainableProvider,
  watch: (changed: (slices: readonly unknown[], synced: boolean) => void) => void,
  signal: AbortSignal,
) => Promise<void>
type Start = (
  lb: DrainableProvider,
  client: unknown,
  tickets: unknown,
) => AsyncDisposable & { set(desired: unknown): void; settled(): Promise<void> }

/** One EndpointSlice of a Service with one endpoint. */
function slice(): unknown {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: 'web-1',
      namespace: 'default',
      labels: { 'kubernetes.io/service-name': 'web' },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: [
      { addresses: ['10.0.0.9'], conditions: { ready: true, serving: true, terminating: false } },
    ],
  }
}
