/** A HAProxy in front of pods. Those of its configuration are reached by SOCKS, those that are added by their own address. */
import type { Engine } from '../engines.js'
import { cli, Haproxy } from '../haproxy.js'
import { Backend } from '../haproxy-traffic.js'
import { relayCli, type Nets } from './address-relay.js'
import { podNames, type Front } from './front.js'
import { startSocks } from './socks4.js'

const NET = '10.1.0.'

export class HaproxyFront implements Front {
  readonly controller = 'examples/kubernetes/controller.ts'
  readonly haproxy: Haproxy
  readonly pods: readonly Backend[]
  readonly #nets: Nets
  readonly #stack: AsyncDisposableStack

  private constructor(
    haproxy: Haproxy,
    pods: readonly Backend[],
    nets: Nets,
    stack: AsyncDisposableStack,
  ) {
    this.haproxy = haproxy
    this.pods = pods
    this.#nets = nets
    this.#stack = stack
  }

  static async open(engine: Engine, count: number): Promise<HaproxyFront> {
    await using stack = new AsyncDisposableStack()
    const ports = new Map<string, number>()
    const socks = stack.use(await startSocks((address) => ports.get(address)))
    const names = podNames(count)
    const backend = (name: string, port: (name: string) => number): string => `
frontend f_${name}
  bind 127.0.0.1:${port(name)}
  default_backend ${name}
backend ${name}
  balance roundrobin
  default-server socks4 127.0.0.1:${socks.port}
${names.map((pod, i) => `  server pod-${pod} ${NET}${i + 1}:8080 # ${port(pod)}`).join('\n')}`
    const haproxy = stack.use(
      await Haproxy.start({
        engine,
        config: (port) => `${backend('web', port)}${backend('api', port)}
backend nodes
  balance roundrobin
  server node-n1 192.0.2.1:30080
  server node-n2 192.0.2.2:30080`,
      }),
    )
    const pods: Backend[] = []
    for (const [i, name] of names.entries()) {
      ports.set(`${NET}${i + 1}`, haproxy.port(name))
      pods.push(stack.use(await Backend.start(haproxy.port(name), name)))
    }
    const web = haproxy.port('web') // nobody else has it now, so nobody has this net
    const nets = { pods: NET, loopback: `127.${web >> 8}.${web & 255}.` }
    for (const path of [haproxy.socket, haproxy.master])
      stack.use(await relayCli(`${path}.pods`, path, nets))
    return new HaproxyFront(haproxy, pods, nets, stack.move())
  }

  get port(): number {
    return this.haproxy.port('web')
  }

  get apiPort(): number {
    return this.haproxy.port('api')
  }

  get env(): Readonly<Record<string, string>> {
    const { socket, master } = this.haproxy
    return { HAPROXY: `${socket}.pods`, HAPROXY_MASTER: `${master}.pods` }
  }

  addressOf(n: number): string {
    return `${NET}${n}`
  }

  async startPod(name: string, n: number): Promise<Backend> {
    return this.#stack.use(await Backend.start(8080, name, `${this.#nets.loopback}${n}`))
  }

  statusOf(pod: string): Promise<string> {
    return this.haproxy.stat('web', `pod-${pod}`, 'status')
  }

  async statusAt(address: string): Promise<string> {
    const name = (await this.#rows('web')).find((row) => row[4] === address)?.[3]
    return name === undefined ? '' : this.haproxy.stat('web', name, 'status')
  }

  async replace(pool: string, ready: ReadonlyMap<string, string>): Promise<void> {
    const socket = `${this.haproxy.socket}.pods`
    const there = (await this.#rows(pool)).flatMap((row) => row[3] ?? [])
    for (const name of there)
      if (!ready.has(name)) {
        await cli(socket, `set server ${pool}/${name} state maint`)
        await cli(socket, `shutdown sessions server ${pool}/${name}`)
        await cli(socket, `del server ${pool}/${name}`)
      }
    for (const [name, address] of ready) {
      if (!there.includes(name)) await cli(socket, `add server ${pool}/${name} ${address}:8080`)
      await cli(socket, `set server ${pool}/${name} state ready`)
      await cli(socket, `enable server ${pool}/${name}`)
    }
  }

  async #rows(pool: string): Promise<readonly (readonly string[])[]> {
    const text = await cli(`${this.haproxy.socket}.pods`, `show servers state ${pool}`)
    return text
      .split('\n')
      .slice(2)
      .map((row) => row.split(' '))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}
