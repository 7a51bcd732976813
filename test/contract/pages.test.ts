/** The programs that stand on the pages of the docs are run, as they stand there, on stand-ins of the balancers. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DrainableProvider } from 'drainable'
import { callContext } from 'drainable/provider'
import { fakeProvider } from 'drainable/testing'
import { startFake as startCitrix } from 'drainable/testing/citrix-adc'
import { startFake as startEnvoy } from 'drainable/testing/envoy'
import { startFake as startListener } from 'drainable/testing/envoy-listener'
import { startFake as startBigip } from 'drainable/testing/f5-bigip'
import { startFake as startDataplane } from 'drainable/testing/haproxy-dataplane'
import { startFake as startHaproxy } from 'drainable/testing/haproxy-runtime'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { freePort } from '../support/haproxy.js'
import { blocksOf, pages } from '../docs/pages.js'

/** What a page has that is run by another test, or can't be run alone. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'docs/adapters/haproxy-dataplane.md 2': 'test/engine/haproxy-dataplane/runtime.test.ts',
  'docs/adapters/your-own.md 1': 'examples/elb, test/contract/elb-example.test.ts',
  'docs/adapters/your-own.md 2': 'examples/elb, test/contract/elb-example.test.ts',
  'docs/testing.md 1': 'node:test, which does not run inside this runner; test/unit/testing',
  'docs/testing.md 5': 'the contract suite, with a balancer of the reader; test/contract',
}
/** Pages whose recipes recipes.test.ts runs one by one. */
const RECIPES = ['tasks', 'after-a-crash', 'fixed-timers', 'questions'].map(
  (one) => `docs/${one}.md`,
)

const blocks = new Map(
  pages
    .filter(({ path }) => !RECIPES.includes(path))
    .flatMap((page) =>
      blocksOf(page)
        .filter(({ language }) => language === 'ts')
        .map(({ text }, n) => [`${page.path} ${n + 1}` as string, text] as const),
    ),
)
const run = new Set<string>()
const said: string[] = []
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'drainable-pages-'))
  const keep = (...words: unknown[]): void => void said.push(words.join(' '))
  vi.spyOn(console, 'log').mockImplementation(keep)
  vi.spyOn(console, 'error').mockImplementation(keep)
  return () => rm(folder, { recursive: true, force: true })
})
afterAll(() => vi.restoreAllMocks())

type Exports = Readonly<Record<string, (...args: never[]) => Promise<unknown>>>

/** Runs the n-th program of a page, with this machine's places for those that it names. */
async function page(
  name: string,
  places: Readonly<Record<string, string>>,
  given: Readonly<Record<string, unknown>> = {},
): Promise<Exports> {
  run.add(name)
  let text = blocks.get(name)
  if (text === undefined) throw new Error(`there is no ${name}`)
  for (const [from, to] of Object.entries(places)) {
    if (!text.includes(from)) throw new Error(`${name} does not say ${from}`)
    text = text.replaceAll(from, to)
  }
  const path = join(folder, `${name.replaceAll(/\W+/g, '-')}.ts`)
  // What it declares and its reader has.
  const key: string = `given:${name}`
  Object.assign(globalThis, { [key]: given })
  text = text.replaceAll(/^declare (?:const|function) (\w+).*$/gm, (_, one: string) =>
    one in given ? `const ${one} = (globalThis as any)[${JSON.stringify(key)}].${one}` : '',
  )
  await writeFile(path, text)
  return (await import(/* @vite-ignore */ path)) as Exports
}

const quoted = (value: unknown): string => JSON.stringify(value)
const tlsOf = (ca: string): string => `{ ca: ${quoted(ca)} }`

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
    await page(name, places, given)
    const sent = fake.requests.map(({ line }) => line).join('\n')
    expect(sent).toContain('set server web/web1 state drain')
    expect(fake.adminMask({ pool: 'web', member: 'web1' })).toBe(0)
  })

  it.concurrent('docs/adapters/haproxy-dataplane.md 1', async () => {
    await using fake = await startDataplane({
      pools: { web: ['web1', 'web2'] },
      username: 'drainer',
      password: 'secret',
    })
    await page('docs/adapters/haproxy-dataplane.md 1', {
      'https://lb1.example:5555': fake.url,
      "  tls: { ca: '/etc/ssl/lb.pem' },\n": '',
      "process.env['DATAPLANE_PASSWORD'] ?? ''": "'secret'",
    })
    const changes = fake.requests.filter(({ line }) => /^PUT .*servers\/web1/.test(line))
    expect(changes.length).toBeGreaterThan(1)
  })

  it.concurrent('docs/adapters/f5-bigip.md 1', async () => {
    await using fake = await startBigip({
      pair: true,
      pools: { web: ['10.0.0.1:80', '10.0.0.2:80'] },
      username: 'drainer',
    })
    await page('docs/adapters/f5-bigip.md 1', {
      "['https://bigip1.example', 'https://bigip2.example']": quoted(fake.urls),
      "process.env['BIGIP_PASSWORD'] ?? ''": quoted(fake.password),
      "{ ca: '/etc/ssl/corp.pem' }": tlsOf(fake.ca),
    })
    expect(fake.state({ pool: 'web', member: '10.0.0.1:80' })).toBe('ready')
  })

  it.concurrent('docs/adapters/citrix-adc.md 1', async () => {
    await using fake = await startCitrix({
      ha: true,
      pools: { sg_web: ['10.0.1.1:80', '10.0.1.2:80'] },
      username: 'drainer',
    })
    await page('docs/adapters/citrix-adc.md 1', {
      "['https://10.0.0.11', 'https://10.0.0.12']": quoted(fake.urls),
      "process.env.ADC_PASSWORD ?? ''": quoted(fake.password),
      "{ ca: '/etc/ssl/adc.pem' }": tlsOf(fake.ca),
    })
    expect(fake.look({ pool: 'sg_web', member: '10.0.1.1:80' }).enabled).toBe(true)
  })

  it.concurrent('docs/adapters/citrix-adc.md 2', async () => {
    await using fake = await startCitrix({
      pools: { sg_web: ['10.0.1.1:80', '10.0.1.2:80'] },
      username: 'drainer',
      password: 'secret',
    })
    await page('docs/adapters/citrix-adc.md 2', {
      "'https://10.0.0.11'": `${quoted(fake.url)}, tls: ${tlsOf(fake.ca)}`,
    })
    expect(said.filter((line) => line.startsWith('sg_web 10.0.1.1:80'))).toHaveLength(1)
  })

  it.concurrent('docs/adapters/envoy.md 1', async () => {
    const file = await assignment('web-1', ['10.0.0.1:8080', '10.0.0.2:8080'])
    await using fake = await startEnvoy({ eds: { file } })
    await page('docs/adapters/envoy.md 1', {
      '/etc/envoy/eds/web.json': file,
      'http://127.0.0.1:9901': fake.url,
    })
    expect(await readFile(file, 'utf8')).not.toContain('DRAINING')
  })

  it.concurrent('docs/adapters/envoy.md 2', async () => {
    const web = await assignment('web-2', ['10.0.0.1:8080', '10.0.0.2:8080'])
    const api = await assignment('api', ['10.0.0.1:9090', '10.0.0.2:9090'], 'api')
    await using fake = await startEnvoy({
      pools: { web: [], api: [] },
      eds: { files: { web, api } },
    })
    await page('docs/adapters/envoy.md 2', {
      '/etc/envoy/eds/web.json': web,
      '/etc/envoy/eds/api.yaml': api,
      'http://127.0.0.1:9901': fake.url,
    })
    expect(await readFile(web, 'utf8')).toContain('DRAINING')
    expect(await readFile(api, 'utf8')).toContain('DRAINING')
  })

  it.concurrent('docs/adapters/envoy.md 3', async () => {
    const port = await freePort()
    const grpc = `http://127.0.0.1:${port}`
    await using fake = await startEnvoy({ pools: { web: [] }, eds: { grpc, ads: true } })
    const proxies = (): Promise<string[]> => Promise.resolve([fake.url])
    const sets = [endpointSet('web', ['10.0.0.1:8080', '10.0.0.2:8080'])]
    await page(
      'docs/adapters/envoy.md 3',
      {
        'port: 18000': `port: ${port}`,
        "host: '0.0.0.0'": "host: '127.0.0.1'",
        "    tls: { cert: '/etc/xds/tls.crt', key: '/etc/xds/tls.key', clientCa: '/etc/xds/ca.crt' },\n":
          '',
        'expect: 30': 'expect: 1',
      },
      { proxies, sets },
    )
    const chosen = [1, 2, 3, 4].map(() => fake.send('web')?.member)
    expect(new Set(chosen)).toEqual(new Set(['10.0.0.2:8080']))
  })

  it.concurrent('docs/adapters/envoy.md 4', async () => {
    const port = await freePort()
    const tickets = join(folder, 'drains')
    const proxies = (): Promise<string[]> => Promise.resolve([])
    const sets = [endpointSet('web', ['10.0.0.1:8080', '10.0.0.2:8080'])]
    await page(
      'docs/adapters/envoy.md 4',
      { 'port: 18000': `port: ${port}`, '/var/lib/drains': tickets },
      { proxies, sets },
    )
  })

  it.concurrent('docs/adapters/envoy.md 5', async () => {
    const member = { pool: 'web', member: '10.0.0.1:8080' }
    await using fake = await startEnvoy({ pools: { web: [member.member, '10.0.0.2:8080'] } })
    await fake.setBehind(member, 'drain') // the control plane drains
    const proxies = (): Promise<string[]> => Promise.resolve([fake.url])
    await page('docs/adapters/envoy.md 5', {}, { proxies })
    expect(said.join('\n')).toMatch(/stop it now: .*10\.0\.0\.1:8080/)
  })

  it.concurrent('docs/adapters/envoy-listener.md 1', async () => {
    await using fake = await startListener({ checkInterval: 100 })
    await page('docs/adapters/envoy-listener.md 1', { 'http://127.0.0.1:9901': fake.url })
    expect(fake.told.quit).toBe(true)
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
    const file = await assignment('mesh', ['10.0.0.1:8080', '10.0.0.2:8080'])
    const mesh = stack.use(await startEnvoy({ eds: { file } }))
    const { replace } = await page('docs/drain-everywhere.md 1', {
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
    const { dryRun } = await page('docs/endpoint-conditions.md 1', {})
    const text = await (dryRun as unknown as DryRun)(lb, [slice()], [], callContext())
    expect(text).toContain('ctl-10.0.0.9:8080')
    expect(text).toMatch(/leave +web\/web1 .*foreign/)
  })

  it.concurrent('docs/endpoint-conditions.md 2', async () => {
    const lb = fakeProvider({ pools: { web: ['web1'] } })
    const { step } = await page('docs/endpoint-conditions.md 2', {})
    const member = { pool: 'web', member: 'ctl-1' }
    const one = { ...member, address: '10.0.0.9', port: 8080, state: 'serve' }
    await (step as unknown as Step)(lb, [one], new AbortController().signal)
    expect(lb.state(member)).toBe('ready')
  })

  it.concurrent('docs/your-own-controller.md 1', async () => {
    const lb = fakeProvider({ pools: { web: ['web1'] } })
    const stop = new AbortController()
    const tickets = join(folder, 'controller')
    const { run: loop } = await page('docs/your-own-controller.md 1', {
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

  it.concurrent('docs/several-controllers.md 1', async () => {
    const lb = fakeProvider({ pools: { web: ['web1', 'web2'] } })
    const { start } = await page('docs/several-controllers.md 1', {})
    const client = { eval: () => Promise.resolve([1, '7']) }
    const loop = (start as unknown as Start)(lb, client, new Map())
    await using _ = loop
    const web = ['web1', 'web2'].map((member) => ({ pool: 'web', member, state: 'serve' }))
    loop.set(web)
    await loop.settled()
    expect(said).toContain('we lead')
  })

  it.concurrent('docs/testing.md 2', async () => {
    await page('docs/testing.md 2', {})
    expect(said).toContain('0')
  })

  it.concurrent('docs/testing.md 3', async () => {
    await page('docs/testing.md 3', {})
    expect(said).toContain('idle')
  })

  it.concurrent('docs/testing.md 4', async () => {
    await page('docs/testing.md 4', {})
    expect(said).toContain('hello')
  })
})

afterAll(() => {
  const left = [...blocks.keys()].filter((name) => !run.has(name) && !(name in ELSEWHERE))
  expect(left).toEqual([])
})

type Replace = (address: string, password: string, work: () => Promise<void>) => Promise<void>
type DryRun = (...args: unknown[]) => Promise<string>
type Step = (lb: DrainableProvider, desired: unknown, signal: AbortSignal) => Promise<void>
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

/** An EDS file with these endpoints. */
async function assignment(
  name: string,
  endpoints: readonly string[],
  cluster = 'web',
): Promise<string> {
  const path = join(folder, `${name}.json`)
  const type = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment'
  const resource = { '@type': type, ...endpointSet(cluster, endpoints) }
  await writeFile(path, JSON.stringify({ version_info: '1', resources: [resource] }))
  return path
}

function endpointSet(cluster: string, endpoints: readonly string[]): object {
  const sockets = endpoints.map((endpoint) => {
    const [address, port] = endpoint.split(':')
    return { endpoint: { address: { socket_address: { address, port_value: Number(port) } } } }
  })
  return { cluster_name: cluster, endpoints: [{ lb_endpoints: sockets }] }
}

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
