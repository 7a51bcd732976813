/** Random drains on a real HAProxy: reloads, pauses and operators over mixed traffic, where the backends know the truth. */
import { startDrain } from 'drainable'
import { Random } from '../model/random.js'
import type { Engine } from './engines.js'
import { until } from './haproxy.js'
import { Client, lab, site, type Config, type Lab } from './haproxy-lab.js'
import { Backend, Tunnel } from './haproxy-traffic.js'

/** What came of so many drains. */
export interface RandomRun {
  readonly outcomes: Readonly<Record<string, number>>
  readonly requests: number
  /** Each names the seed of its drain: idle was said, verified and sealed, and work was there or came. */
  readonly falseIdles: readonly string[]
}

/** Answers that are held are let go of so often, ms. */
const WORK = 40

/** Clients of every kind: with a cookie and without, each on a connection that it keeps, and a WebSocket elsewhere. */
class Traffic {
  requests = 0
  readonly #lab: Lab
  readonly #stop = new AbortController()
  readonly #clients: Promise<void>[]
  readonly #release: NodeJS.Timeout

  constructor(it: Lab) {
    this.#lab = it
    this.#release = setInterval(() => {
      it.s1.release(2)
      it.s2.release(2)
    }, WORK)
    const cookies = ['s1', 's2', 's1', 's2', undefined, undefined, undefined]
    this.#clients = cookies.map((cookie, index) => this.#play(new Random(index), cookie))
  }

  async end(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#clients)
    clearInterval(this.#release)
  }

  async #play(random: Random, cookie: string | undefined): Promise<void> {
    using client = new Client(this.#lab.haproxy.port('web'), cookie)
    while (!this.#stop.signal.aborted) {
      await client.ask(random.pick(['/', '/hold', '/stream']))
      this.requests += 1
      const thinks = cookie === undefined ? 200 : 1_500
      await new Promise((resolve) => setTimeout(resolve, random.int(0, thinks)))
    }
  }
}

/** Plays drains one after another, each from a seed of its own. */
export async function drainAtRandom(
  engine: Engine,
  seed: number,
  drains: number,
): Promise<RandomRun> {
  const config: Config = (port) =>
    `${site(port, 'web')}
frontend f_other
  bind 127.0.0.1:${port('other')}
  default_backend other
backend other
  server o1 127.0.0.1:${port('o1')}`
  await using it = await lab({ engine, config, global: '  hard-stop-after 5s' })
  await using other = await Backend.start(it.haproxy.port('o1'), 'o1')
  await using tunnel = await Tunnel.websocket(it.haproxy.port('other'))
  const traffic = new Traffic(it)
  const outcomes: Record<string, number> = {}
  const falseIdles: string[] = []
  for (let n = 0; n < drains; n += 1) {
    const { outcome, fault } = await drainOnce(it, new Random(seed + n))
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
    if (fault !== undefined) falseIdles.push(`seed ${seed + n}: ${fault}`)
  }
  await traffic.end()
  if (other.active > 0) await tunnel.echo('still there')
  return { outcomes, requests: traffic.requests, falseIdles }
}

async function drainOnce(
  it: Lab,
  random: Random,
): Promise<{ readonly outcome: string; readonly fault?: string }> {
  const { haproxy } = it
  const name = random.pick(['s1', 's2'] as const)
  const backend = it[name]
  await using lb = it.provider({ replyTimeout: '2s' })
  await using drained = startDrain(
    lb,
    { pool: 'web', member: name },
    { timeout: '30s', escalateAfter: '500ms' },
  )
  let fault: string | undefined
  drained.on('idle', () => {
    const { verifiedIdle, sealed } = drained.report().members[0]!
    const busy = backend.active
    if (verifiedIdle && sealed && busy > 0) fault = `idle with ${busy} at work`
  })
  for (let count = random.int(0, 3); count > 0; count -= 1) {
    await new Promise((resolve) => setTimeout(resolve, random.int(0, 700)))
    const what = random.weighted([
      ['reload', 3],
      ['pause', 3],
      ['operator', 1],
    ] as const)
    if (what === 'reload') await haproxy.reload()
    else if (what === 'operator') await haproxy.cli(`set server web/${name} state maint`)
    else {
      const pid = await haproxy.signal('SIGSTOP')
      await new Promise((resolve) => setTimeout(resolve, random.int(50, 1_500)))
      process.kill(pid, 'SIGCONT')
    }
  }
  const { members } = await drained.done
  const { outcome, verifiedIdle, sealed } = members[0]!
  if (outcome === 'idle' && verifiedIdle && sealed) {
    // A reload after the idle forgets the seal for a moment: what comes in that gap is no false idle.
    await until(async () => (await haproxy.stat('web', name, 'status')) === 'MAINT', 'sealed')
    const before = backend.total
    await new Promise((resolve) => setTimeout(resolve, 300))
    if (backend.total !== before && fault === undefined)
      fault = `${backend.total - before} came after a sealed idle`
  }
  await drained.restore()
  // What the operator has set is left alone by it, and by whom it is to be given back.
  await until(async () => {
    await haproxy.cli(`set server web/${name} state ready`)
    return (await haproxy.stat('web', name, 'status')) === 'no check'
  }, 'ready')
  return { outcome: `${outcome}${verifiedIdle ? '' : ', unverified'}`, ...(fault && { fault }) }
}
