/** Random drains on a real HAProxy: reloads, pauses and operators over mixed traffic, where the backends know the truth. */
import { startDrain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { Random } from '../model/random.js'
import type { RandomRun } from './random-run.js'
import type { Engine } from './engines.js'
import { Haproxy, until } from './haproxy.js'
import { Client } from './haproxy-lab.js'
import { Backend, Tunnel } from './haproxy-traffic.js'

/** Backends with two servers each; one drain at a time goes on in each, so that they meet one another's reloads. */
const POOLS = ['web0', 'web1', 'web2', 'web3', 'web4'] as const
/** Answers that are held are let go of so often, ms. */
const WORK = 40

type Servers = Readonly<Record<'s1' | 's2', Backend>>

/** One HAProxy with all pools. What concerns all of them is done one after another. */
class Stage implements AsyncDisposable {
  readonly haproxy: Haproxy
  readonly pools = new Map<string, Servers>()
  reloads = 0
  #last: Promise<void> = Promise.resolve()

  private constructor(haproxy: Haproxy) {
    this.haproxy = haproxy
  }

  static async start(engine: Engine): Promise<Stage> {
    const stage = new Stage(
      await Haproxy.start({
        engine,
        global: '  hard-stop-after 5s\n  stats maxconn 100',
        config: (port) =>
          [...POOLS, 'other']
            .map(
              (pool) => `
frontend f_${pool}
  bind 127.0.0.1:${port(pool)}
  default_backend ${pool}
backend ${pool}
  cookie SRV insert
  server s1 127.0.0.1:${port(`${pool}_s1`)} cookie s1
  server s2 127.0.0.1:${port(`${pool}_s2`)} cookie s2`,
            )
            .join('\n'),
      }),
    )
    for (const pool of [...POOLS, 'other']) {
      const [s1, s2] = await Promise.all(
        ['s1', 's2'].map((name) => Backend.start(stage.haproxy.port(`${pool}_${name}`), name)),
      )
      stage.pools.set(pool, { s1: s1!, s2: s2! })
    }
    return stage
  }

  reload(): Promise<void> {
    this.#last = this.#last.then(async () => {
      this.reloads += 1
      await this.haproxy.reload()
      this.reloads += 1
    })
    return this.#last
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.haproxy[Symbol.asyncDispose]()
    for (const { s1, s2 } of this.pools.values()) {
      await s1[Symbol.asyncDispose]()
      await s2[Symbol.asyncDispose]()
    }
  }
}

/** Clients of one pool: with a cookie and without, each on a connection that it keeps. */
class Traffic {
  requests = 0
  readonly #port: number
  readonly #stop = new AbortController()
  readonly #clients: Promise<void>[]
  readonly #release: NodeJS.Timeout

  constructor(port: number, { s1, s2 }: Servers) {
    this.#port = port
    this.#release = setInterval(() => {
      s1.release(2)
      s2.release(2)
    }, WORK)
    const cookies = ['s1', 's2', 's1', undefined, undefined]
    this.#clients = cookies.map((cookie, index) => this.#play(new Random(index), cookie))
  }

  async end(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#clients)
    clearInterval(this.#release)
  }

  async #play(random: Random, cookie: string | undefined): Promise<void> {
    using client = new Client(this.#port, cookie)
    while (!this.#stop.signal.aborted) {
      await client.ask(random.pick(['/', '/hold', '/stream']))
      this.requests += 1
      const thinks = cookie === undefined ? 200 : 1_500
      await new Promise((resolve) => setTimeout(resolve, random.int(0, thinks)))
    }
  }
}

/** Plays so many drains, each from a seed of its own; in every pool one after another. */
export async function drainAtRandom(
  engine: Engine,
  seed: number,
  drains: number,
): Promise<RandomRun> {
  await using stage = await Stage.start(engine)
  // Work of another pool that outlasts every reload but a hard stop.
  await using tunnel = await Tunnel.websocket(stage.haproxy.port('other'))
  const outcomes: Record<string, number> = {}
  const falseIdles: string[] = []
  let requests = 0
  await Promise.all(
    POOLS.map(async (pool, lane) => {
      const traffic = new Traffic(stage.haproxy.port(pool), stage.pools.get(pool)!)
      for (let n = lane; n < drains; n += POOLS.length) {
        const { outcome, fault } = await drainOnce(stage, pool, new Random(seed + n))
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
        if (fault !== undefined) falseIdles.push(`seed ${seed + n}: ${fault}`)
      }
      await traffic.end()
      requests += traffic.requests
    }),
  )
  if (!tunnel.closed) await tunnel.echo('still there')
  return { outcomes, requests, falseIdles }
}

/** What happens to all that runs there. */
async function disturb(stage: Stage, pool: string, name: string, random: Random): Promise<void> {
  const { haproxy } = stage
  for (let count = random.int(0, 3); count > 0; count -= 1) {
    await new Promise((resolve) => setTimeout(resolve, random.int(0, 700)))
    const what = random.weighted([
      ['reload', 3],
      ['pause', 3],
      ['operator', 1],
    ] as const)
    if (what === 'reload') await stage.reload()
    else if (what === 'operator') await haproxy.cli(`set server ${pool}/${name} state maint`)
    else {
      const pid = await haproxy.signal('SIGSTOP')
      await new Promise((resolve) => setTimeout(resolve, random.int(50, 1_500)))
      goOn(pid)
    }
  }
}

/** Another drain may have let it go on, and it may have ended since. */
function goOn(pid: number): void {
  try {
    process.kill(pid, 'SIGCONT')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

async function drainOnce(
  stage: Stage,
  pool: string,
  random: Random,
): Promise<{ readonly outcome: string; readonly fault?: string }> {
  const { haproxy } = stage
  const name = random.pick(['s1', 's2'] as const)
  const backend = stage.pools.get(pool)![name]
  await using lb = haproxyRuntime({
    socket: haproxy.socket,
    master: haproxy.master,
    replyTimeout: '2s',
  })
  const ref = { pool, member: name }
  await using drained = startDrain(lb, ref, { timeout: '30s', escalateAfter: '500ms' })
  let fault: string | undefined
  drained.on('idle', () => {
    const { verifiedIdle, sealed } = drained.report().members[0]!
    const busy = backend.active
    if (verifiedIdle && sealed && busy > 0) fault = `idle with ${busy} at work`
  })
  await disturb(stage, pool, name, random)
  const report = await drained.done
  const [found] = report.members
  // Another drain's pause, or its reload, may outlast the patience of a first look: it has changed nothing.
  if (found === undefined) return { outcome: `not begun, ${report.error?.code ?? '?'}` }
  const { outcome, verifiedIdle, sealed } = found
  if (outcome === 'idle' && verifiedIdle && sealed) {
    // A reload after the idle forgets the seal for a moment: what comes in that gap is no false idle.
    await until(async () => (await haproxy.stat(pool, name, 'status')) === 'MAINT', 'sealed')
    const before = { total: backend.total, reloads: stage.reloads }
    await new Promise((resolve) => setTimeout(resolve, 300))
    const whole = before.reloads === stage.reloads && before.reloads % 2 === 0
    if (whole && backend.total !== before.total && fault === undefined)
      fault = `${backend.total - before.total} came after a sealed idle`
  }
  await drained.restore()
  // What the operator has set is left alone by it, and by whom it is to be given back.
  await until(async () => {
    await haproxy.cli(`set server ${pool}/${name} state ready`)
    return (await haproxy.stat(pool, name, 'status')) === 'no check'
  }, 'ready')
  return { outcome: `${outcome}${verifiedIdle ? '' : ', unverified'}`, ...(fault && { fault }) }
}
