/**
 * An Envoy in front of pods, with a cluster and a listener for each Service, whose endpoints are files of the controller's.
 * Files and admin API have the pods' addresses on the controller's side, and loopback addresses of the same length on Envoy's.
 */
import { watch } from 'node:fs'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../../../scripts/ports.ts'
import type { Engine } from '../engines.js'
import { startEnvoy, workDir, type RunningEnvoy } from '../envoy/proxy.js'
import { Backend } from '../haproxy-traffic.js'
import { relayCli, type Nets } from './address-relay.js'
import { podNames, type Front } from './front.js'

interface Row {
  readonly address: { readonly socket_address: { readonly address: string } }
  readonly health_status?: { readonly eds_health_status?: string }
}

const CLUSTERS = ['web', 'api']

export class EnvoyFront implements Front {
  readonly controller = 'test/support/kube-stage/envoy-controller.ts'
  readonly pods: readonly Backend[]
  readonly apiPort: number
  readonly env: Readonly<Record<string, string>>
  readonly #envoy: RunningEnvoy
  readonly #nets: Nets
  readonly #folder: string
  readonly #stack: AsyncDisposableStack

  private constructor(parts: {
    readonly pods: readonly Backend[]
    readonly envoy: RunningEnvoy
    readonly admin: number
    readonly nets: Nets
    readonly folder: string
    readonly apiPort: number
    readonly stack: AsyncDisposableStack
  }) {
    this.pods = parts.pods
    this.apiPort = parts.apiPort
    this.env = { ENVOY_FOLDER: parts.folder, ENVOY_ADMIN: `http://127.0.0.1:${parts.admin}` }
    this.#envoy = parts.envoy
    this.#nets = parts.nets
    this.#folder = parts.folder
    this.#stack = parts.stack
  }

  static async open(engine: Engine, count: number): Promise<EnvoyFront> {
    await using stack = new AsyncDisposableStack()
    const { path } = stack.use(await workDir())
    const own = await freePort() // nobody else has it now, so nobody has this net
    const rest = `${own >> 8}.${own & 255}.`
    const nets = { pods: `100.${rest}`, loopback: `127.${rest}` }
    const [folder, envoys] = [join(path, 'controller'), join(path, 'envoy')]
    for (const one of [folder, envoys]) await mkdir(one)
    const names = podNames(count)
    const addresses = names.map((_, i) => `${nets.pods}${i + 1}`)
    for (const cluster of CLUSTERS) {
      await moveTo(fileOf(folder, cluster), setOf(cluster, addresses))
      await copy(fileOf(folder, cluster), fileOf(envoys, cluster), nets)
    }
    stack.use(copying(folder, envoys, nets))
    const pods: Backend[] = []
    for (const [i, name] of names.entries())
      pods.push(stack.use(await Backend.start(8080, name, `${nets.loopback}${i + 1}`)))
    const cluster = {
      common_lb_config: { update_merge_window: '0s', healthy_panic_threshold: { value: 0 } },
    }
    // As the `retries` of the HAProxy: a connection that was refused has sent nothing.
    const route = {
      retry_policy: {
        retry_on: 'connect-failure',
        num_retries: 3,
        retry_host_predicate: [
          {
            name: 'envoy.retry_host_predicates.previous_hosts',
            typed_config: {
              '@type':
                'type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate',
            },
          },
        ],
        host_selection_retry_max_attempts: 3,
      },
    }
    const eds = { file: fileOf(envoys, 'web') }
    const apiPort = await freePort()
    const more = { api: { port: apiPort, file: fileOf(envoys, 'api') } }
    const envoy = stack.use(await startEnvoy({ path: engine.path, eds, more, cluster, route }))
    const admin = await freePort()
    stack.use(await relayCli(admin, Number(new URL(envoy.admin).port), nets))
    return new EnvoyFront({ pods, envoy, admin, nets, folder, apiPort, stack: stack.move() })
  }

  get port(): number {
    return this.#envoy.http
  }

  addressOf(n: number): string {
    return `${this.#nets.pods}${n}`
  }

  async startPod(name: string, n: number): Promise<Backend> {
    return this.#stack.use(await Backend.start(8080, name, `${this.#nets.loopback}${n}`))
  }

  statusOf(_: string, address: string): Promise<string> {
    return this.statusAt(address)
  }

  async statusAt(address: string): Promise<string> {
    const { cluster_statuses: all } = JSON.parse(
      await this.#envoy.get('/clusters?format=json'),
    ) as {
      cluster_statuses: readonly {
        readonly name: string
        readonly host_statuses?: readonly Row[]
      }[]
    }
    const here = address.replace(this.#nets.pods, this.#nets.loopback)
    const rows = all.find(({ name }) => name === 'web')?.host_statuses ?? []
    const row = rows.find((one) => one.address.socket_address.address === here)
    if (row === undefined) return ''
    return row.health_status?.eds_health_status === 'DRAINING' ? 'DRAIN' : 'no check'
  }

  async replace(pool: string, ready: ReadonlyMap<string, string>): Promise<void> {
    await moveTo(fileOf(this.#folder, pool), setOf(pool, [...ready.values()]))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

function fileOf(folder: string, cluster: string): string {
  return join(folder, `${cluster}.json`)
}

/** A file of one set, as Envoy reads it. */
function setOf(cluster: string, addresses: readonly string[]): string {
  const lb_endpoints = addresses.map((address) => ({
    endpoint: { address: { socket_address: { address, port_value: 8080 } } },
  }))
  const type = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment'
  return JSON.stringify({
    resources: [{ '@type': type, cluster_name: cluster, endpoints: [{ lb_endpoints }] }],
  })
}

/** Envoy takes a file in when it is moved into its place. */
async function moveTo(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text)
  await rename(`${path}.new`, path)
}

async function copy(from: string, to: string, { pods, loopback }: Nets): Promise<void> {
  await moveTo(to, (await readFile(from, 'utf8')).replaceAll(pods, loopback))
}

/** Copies the files of a folder whenever one is moved into its place. */
function copying(from: string, to: string, nets: Nets): AsyncDisposable {
  let work = Promise.resolve()
  const watcher = watch(from, (_, name) => {
    const cluster = CLUSTERS.find((one) => name === `${one}.json`)
    if (cluster !== undefined)
      work = work.then(() => copy(fileOf(from, cluster), fileOf(to, cluster), nets))
  })
  return {
    [Symbol.asyncDispose]: () => {
      watcher.close()
      return work
    },
  }
}
