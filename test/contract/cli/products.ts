/** Each product's fake as the command is pointed at it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startFake as startCitrix } from 'drainable/testing/citrix-adc'
import { startFake as startEnvoy } from 'drainable/testing/envoy'
import { startFake as startBigip } from 'drainable/testing/f5-bigip'
import { startFake as startDataplane } from 'drainable/testing/haproxy-dataplane'
import { startFake as startHaproxy } from 'drainable/testing/haproxy-runtime'
import { haproxyUrl } from '../../support/haproxy-url.js'

/** A fake, and how the command line names it. */
export interface Product extends AsyncDisposable {
  readonly url: string
  /** Two members as targets, and their pool. */
  readonly a: string
  readonly b: string
  readonly pool: string
  /** The options and variables of a login. */
  readonly flags: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

interface Secured {
  readonly url: string
  readonly username: string
  readonly password: string
  readonly ca?: string | undefined
}

/** A fake over https: its CA comes from a file, its password from the environment. */
async function secured(
  name: string,
  stack: AsyncDisposableStack,
  { url, username, password, ca = '' }: Secured,
  members: Pick<Product, 'a' | 'b' | 'pool'>,
  query = '',
): Promise<Product> {
  const file = join(await folder(stack), 'ca.pem')
  await writeFile(file, ca)
  const moved = stack.move()
  return {
    url: `${name}+${url}${query}`,
    ...members,
    flags: ['--username', username, '--ca', file],
    env: { DRAINABLE_PASSWORD: password },
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  }
}

async function folder(stack: AsyncDisposableStack): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'drainable-cli-'))
  stack.defer(() => rm(path, { recursive: true }))
  return path
}

async function openHaproxy(): Promise<Product> {
  await using stack = new AsyncDisposableStack()
  const fake = stack.use(await startHaproxy({ pools: { web: ['web1', 'web2'] }, master: true }))
  const moved = stack.move()
  return {
    url: haproxyUrl(fake),
    a: 'web/web1',
    b: 'web/web2',
    pool: 'web/',
    flags: [],
    env: {},
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  }
}

export async function openDataplane(): Promise<Product> {
  await using stack = new AsyncDisposableStack()
  const fake = stack.use(await startDataplane({ pools: { web: ['web1', 'web2'] }, tls: true }))
  return await secured('dataplane', stack, fake, { a: 'web/web1', b: 'web/web2', pool: 'web/' })
}

async function openBigip(): Promise<Product> {
  await using stack = new AsyncDisposableStack()
  const fake = stack.use(await startBigip({ pools: { web: ['10.0.0.1:80', '10.0.0.2:80'] } }))
  const at = (host: string): string => `/Common/web//Common/${host}:80`
  const members = { a: at('10.0.0.1'), b: at('10.0.0.2'), pool: '/Common/web/' }
  return await secured('bigip', stack, fake, members, '?freshness=10ms&minInterval=20ms')
}

async function openCitrix(): Promise<Product> {
  await using stack = new AsyncDisposableStack()
  const fake = stack.use(await startCitrix({ pools: { web: ['web1:80', 'web2:80'] }, tick: 20 }))
  const members = { a: 'web/web1:80', b: 'web/web2:80', pool: 'web/' }
  return await secured('citrix', stack, fake, members, '?freshness=50ms')
}

/** @param status - of the first endpoint in its set */
export async function openEnvoy(status = 'HEALTHY'): Promise<Product & { readonly file: string }> {
  await using stack = new AsyncDisposableStack()
  const file = join(await folder(stack), 'web.json')
  const hosts = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4']
  const lb_endpoints = hosts.map((address, n) => ({
    health_status: n === 0 ? status : 'HEALTHY',
    endpoint: { address: { socket_address: { address, port_value: 80 } } },
  }))
  const set = {
    '@type': 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment',
    cluster_name: 'web',
    endpoints: [{ lb_endpoints }],
  }
  await writeFile(file, JSON.stringify({ version_info: '1', resources: [set] }))
  const fake = stack.use(await startEnvoy({ eds: { file }, mergeWindow: 10 }))
  const moved = stack.move()
  return {
    file,
    url: `envoy+file:${file}?admin=${fake.url}`,
    a: 'web/10.0.0.1:80',
    b: 'web/10.0.0.2:80',
    pool: 'web/',
    flags: [],
    env: {},
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  }
}

/** Each product by its scheme. */
export const products: Readonly<Record<string, () => Promise<Product>>> = {
  haproxy: openHaproxy,
  dataplane: openDataplane,
  bigip: openBigip,
  citrix: openCitrix,
  envoy: () => openEnvoy(),
}
