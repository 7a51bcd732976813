/**
 * An Envoy in front of pods, whose endpoints are a file of the controller's. The file and the admin API have the pods'
 * addresses on the controller's side, and loopback addresses of the same length on Envoy's.
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

export class EnvoyFront implements Front {
  readonly controller = 'test/support/kube-stage/envoy-controller.ts'
  readonly pods: readonly Backend[]
  readonly env: Readonly<Record<string, string>>
  readonly #envoy: RunningEnvoy
  readonly #nets: Nets
  readonly #file: string
  readonly #stack: AsyncDisposableStack

  private constructor(parts: {
    readonly pods: readonly Backend[]
    readonly envoy: RunningEnvoy
    readonly admin: number
    readonly nets: Nets
    readonly file: string
    readonly stack: AsyncDisposableStack
  }) {
    this.pods = parts.pods
    this.env = { ENVOY_FILE: parts.file, ENVOY_ADMIN: `http://127.0.0.1:${parts.admin}` }
    this.#envoy = parts.envoy
    this.#nets = parts.nets
    this.#file = parts.file
    this.#stack = parts.stack
  }

  static async open(engine: Engine, count: number): Promise<EnvoyFront> {
    await using stack = new AsyncDisposableStack()
    const { path } = stack.use(await workDir())
    const own = await freePort() // nobody else has it now, so nobody has this net
    const rest = `${own >> 8}.${own & 255}.`
    const nets = { pods: `100.${rest}`, loopback: `127.${rest}` }
    const file = join(path, 'controller', 'web.json')
    const envoys = join(path, 'envoy', 'web.json')
    for (const folder of ['controller', 'envoy']) await mkdir(join(path, folder))
    const names = podNames(count)
    await moveTo(file, setOf(names.map((_, i) => `${nets.pods}${i + 1}`)))
    await copy(file, envoys, nets)
    stack.use(copying(file, envoys, nets))
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
    const eds = { file: envoys }
    const envoy = stack.use(await startEnvoy({ path: engine.path, eds, cluster, route }))
    const admin = await freePort()
    stack.use(await relayCli(admin, Number(new URL(envoy.admin).port), nets))
    return new EnvoyFront({ pods, envoy, admin, nets, file, stack: stack.move() })
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

  async replace(ready: ReadonlyMap<string, string>): Promise<void> {
    await moveTo(this.#file, setOf([...ready.values()]))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

/** A file of one set, as Envoy reads it. */
function setOf(addresses: readonly string[]): string {
  const lb_endpoints = addresses.map((address) => ({
    endpoint: { address: { socket_address: { address, port_value: 8080 } } },
  }))
  const type = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment'
  return JSON.stringify({
    resources: [{ '@type': type, cluster_name: 'web', endpoints: [{ lb_endpoints }] }],
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

/** Copies a file whenever it is moved into its place. */
function copying(from: string, to: string, nets: Nets): AsyncDisposable {
  let work = Promise.resolve()
  const watcher = watch(join(from, '..'), (_, name) => {
    if (name === 'web.json') work = work.then(() => copy(from, to, nets))
  })
  return {
    [Symbol.asyncDispose]: () => {
      watcher.close()
      return work
    },
  }
}
