/** The HAProxy of docs/kubernetes.md, started as the page says, and what the manifest of the controller tells it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../../scripts/ports.ts'
import type { Engine } from '../engines.js'
import { workDir } from '../envoy/proxy.js'
import { until } from '../haproxy.js'
import { Backend } from '../haproxy-traffic.js'
import { relayCli, type Nets } from './address-relay.js'
import { podNames, type Front } from './front.js'
import { manifest } from './manifests.js'

const page = readFileSync(
  fileURLToPath(new URL('../../../docs/kubernetes.md', import.meta.url)),
  'utf8',
)
const NET = '10.1.0.'
const SOCKET = '10.0.0.2:9999'
const MASTER = '10.0.0.2:9998'

/** A code block of the page by a word in it. */
function block(word: string): string {
  const found = page.match(/^```\w+\n[\s\S]*?^```/gm)?.find((one) => one.includes(word))
  if (found === undefined) throw new Error(`docs/kubernetes.md has no block with ${word}`)
  return found.split('\n').slice(1, -1).join('\n')
}

/** How many seconds a pod serves after its deletion, as the page has it. */
export const HOOK_SECONDS = Number(/seconds: (\d+)/.exec(block('preStop'))?.[1])

/** The environment of the controller in its Deployment. */
function environment(): Readonly<Record<string, string>> {
  const deployment = manifest('controller.yaml').find(({ kind }) => kind === 'Deployment')
  const { spec } = deployment as unknown as {
    spec: { template: { spec: { containers: { env: { name: string; value: string }[] }[] } } }
  }
  const env = spec.template.spec.containers.flatMap((one) => one.env)
  return Object.fromEntries(env.map(({ name, value }) => [name, value]))
}

export class PageFront implements Front {
  readonly controller = 'examples/kubernetes/controller.ts'
  readonly port: number
  readonly env: Readonly<Record<string, string>>
  readonly pods: readonly Backend[]
  /** Loads the configuration again, as `systemctl reload haproxy` does. */
  readonly reload: () => void
  readonly #cli: number
  readonly #nets: Nets
  readonly #stack: AsyncDisposableStack

  private constructor(parts: {
    readonly port: number
    readonly env: Readonly<Record<string, string>>
    readonly pods: readonly Backend[]
    readonly reload: () => void
    readonly cli: number
    readonly nets: Nets
    readonly stack: AsyncDisposableStack
  }) {
    this.port = parts.port
    this.env = parts.env
    this.pods = parts.pods
    this.reload = parts.reload
    this.#cli = parts.cli
    this.#nets = parts.nets
    this.#stack = parts.stack
  }

  static async open(engine: Engine, count: number): Promise<PageFront> {
    await using stack = new AsyncDisposableStack()
    const { path } = stack.use(await workDir())
    const [port, socket, master] = [await freePort(), await freePort(), await freePort()]
    const here = (text: string): string =>
      text
        .replaceAll(SOCKET, `127.0.0.1:${socket}`)
        .replaceAll(MASTER, `127.0.0.1:${master}`)
        .replaceAll('bind :8080', `bind 127.0.0.1:${port}`)
    writeFileSync(join(path, 'haproxy.cfg'), here(`${block('stats socket')}\n`))
    const args = here(block('haproxy -W')).split(' ').slice(1)
    const child = spawn(engine.path, args, { cwd: path, stdio: 'ignore' })
    stack.defer(async () => {
      const ended = once(child, 'exit')
      if (child.exitCode !== null || !child.kill('SIGTERM')) return
      await ended
    })
    await until(() => ask(socket, 'show info').catch(() => undefined), 'HAProxy answers')
    const nets = { pods: NET, loopback: `127.${port >> 8}.${port & 255}.` }
    const [cli, masterCli] = [await freePort(), await freePort()]
    stack.use(await relayCli(cli, socket, nets))
    stack.use(await relayCli(masterCli, master, nets))
    const pods: Backend[] = []
    for (const [i, name] of podNames(count).entries())
      pods.push(stack.use(await Backend.start(8080, name, `${nets.loopback}${i + 1}`)))
    const env = Object.fromEntries(
      Object.entries(environment()).map(([name, value]) => [
        name,
        value.replace(SOCKET, `127.0.0.1:${cli}`).replace(MASTER, `127.0.0.1:${masterCli}`),
      ]),
    )
    const reload = (): void => void child.kill('SIGUSR2')
    return new PageFront({ port, env, pods, reload, cli, nets, stack: stack.move() })
  }

  addressOf(n: number): string {
    return `${NET}${n}`
  }

  async startPod(name: string, n: number): Promise<Backend> {
    return this.#stack.use(await Backend.start(8080, name, `${this.#nets.loopback}${n}`))
  }

  async statusOf(pod: string): Promise<string> {
    return statusIn((await this.#rows()).find((row) => row[3] === `pod-${pod}`))
  }

  async statusAt(address: string): Promise<string> {
    return statusIn((await this.#rows()).find((row) => row[4] === address))
  }

  replace(): Promise<void> {
    return Promise.reject(new Error('nobody else changes this one'))
  }

  async #rows(): Promise<readonly (readonly string[])[]> {
    const text = await ask(this.#cli, 'show servers state web')
    return text
      .split('\n')
      .slice(2)
      .map((row) => row.split(' '))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

/** By the column of the administrative state: 0 for none. */
function statusIn(row: readonly string[] | undefined): string {
  if (row === undefined) return ''
  return row[6] === '0' ? 'no check' : 'DRAIN'
}

/** One line to a CLI on a port, read to the close. */
async function ask(port: number, line: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.setEncoding('utf8')
  socket.write(`${line}\n`)
  let text = ''
  for await (const part of socket) text += String(part)
  return text
}
