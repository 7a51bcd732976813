/** Random drains on a real HAProxy: reloads, kills, pauses and operators over mixed traffic, where the backends know the truth. */
import { startDrain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { Random } from '../../model/random.js'
import type { Engine } from '../engines.js'
import { Haproxy, until } from '../haproxy.js'
import { Backend, Tunnel } from '../haproxy-traffic.js'
import type { RandomRun } from '../random-run.js'
import { kindOf, poolOf, type Servers, Traffic } from './clients.js'

/** Backends with two servers each; one drain at a time goes on in each, so that they meet one another's reloads. */
const LANES = 26
/** How often a drain disturbs what runs there, and the weight of that. */
const DISTURBANCES = [
  [0, 6],
  [1, 3],
  [2, 1],
] as const
const POOLS = Array.from({ length: LANES }, (_, lane) => `web${lane}`)

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
        global: '  master-worker no-exit-on-failure\n  hard-stop-after 6s\n  stats maxconn 200',
        config: (port) =>
          [...POOLS, 'other']
            .map((pool, lane) => poolOf(pool === 'other' ? 'cookie' : kindOf(lane), pool, port))
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

  /** One line to the socket; again where the process that took it is killed before it has answered. */
  ask(line: string): Promise<string> {
    return until(() => this.haproxy.cli(line).catch(() => undefined), line)
  }

  async status(pool: string, name: string): Promise<string> {
    return until(() => this.haproxy.stat(pool, name, 'status').catch(() => undefined), 'a status')
  }

  reload(): Promise<void> {
    this.#last = this.#last.then(async () => {
      this.reloads += 1
      await this.haproxy.reload()
      this.reloads += 1
    })
    return this.#last
  }

  /** The process that serves dies with all that it carries, and the master starts another. */
  crash(): Promise<void> {
    this.#last = this.#last.then(async () => {
      this.reloads += 1
      const pid = await until(() => this.haproxy.pid().catch(() => undefined), 'a process')
      signal(pid, 'SIGKILL')
      await this.haproxy.revive()
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

/** Plays so many drains, each from a seed of its own; in every pool one after another. */
export async function drainAtRandom(
  engine: Engine,
  seed: number,
  drains: number,
): Promise<RandomRun & { readonly proofs: number }> {
  await using stage = await Stage.start(engine)
  // Work of another pool that outlasts every reload but a hard stop.
  await using tunnel = await Tunnel.websocket(stage.haproxy.port('other'))
  const outcomes: Record<string, number> = {}
  const falseIdles: string[] = []
  let requests = 0
  let proofs = 0
  await Promise.all(
    POOLS.map(async (pool, lane) => {
      const traffic = new Traffic(kindOf(lane), stage.haproxy.port(pool), stage.pools.get(pool)!)
      for (let n = lane; n < drains; n += POOLS.length) {
        const { outcome, proved, fault } = await drainOnce(stage, pool, new Random(seed + n))
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
        if (proved === true) proofs += 1
        if (fault !== undefined) falseIdles.push(`seed ${seed + n}: ${fault}`)
      }
      await traffic.end()
      requests += traffic.requests
    }),
  )
  if (!tunnel.closed) await tunnel.echo('still there')
  return { outcomes, requests, proofs, falseIdles }
}

/**
 * What happens to all that runs there.
 *
 * @returns whether an operator has opened the server
 */
async function disturb(stage: Stage, pool: string, name: string, random: Random): Promise<boolean> {
  const { haproxy } = stage
  let opened = false
  // What one of them does is met by all, so that each sees several.
  for (let count = random.weighted(DISTURBANCES) ?? 0; count > 0; count -= 1) {
    await new Promise((resolve) => setTimeout(resolve, random.int(0, 1_500)))
    const what = random.weighted([
      ['reload', 18],
      ['pause', 6],
      ['maint', 3],
      ['ready', 3],
      ['kill', 3],
      ['crash', 1], // it ends the work of all drains at once, and with it their proof
    ] as const)
    if (what === 'reload') await stage.reload()
    else if (what === 'crash') await stage.crash()
    else if (what === 'kill') {
      for (const pid of await haproxy.oldWorkers()) signal(pid, 'SIGKILL')
    } else if (what === 'maint' || what === 'ready') {
      opened ||= what === 'ready'
      await stage.ask(`set server ${pool}/${name} state ${what}`)
    } else {
      const pid = await until(() => haproxy.signal('SIGSTOP').catch(() => undefined), 'paused')
      await new Promise((resolve) => setTimeout(resolve, random.int(50, 1_000)))
      signal(pid, 'SIGCONT')
    }
  }
  return opened
}

/** It may have ended since. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

async function drainOnce(
  stage: Stage,
  pool: string,
  random: Random,
): Promise<{ readonly outcome: string; readonly proved?: boolean; readonly fault?: string }> {
  const { haproxy } = stage
  const name = random.pick(['s1', 's2'] as const)
  // Not all at once: what one does shall meet the others anywhere in their drains.
  await new Promise((resolve) => setTimeout(resolve, random.int(300, 2_500)))
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
  const opened = await disturb(stage, pool, name, random)
  const report = await drained.done
  const [found] = report.members
  // Another drain's pause, or its reload, may outlast the patience of a first look: it has changed nothing.
  if (found === undefined) return { outcome: `not begun, ${report.error?.code ?? '?'}` }
  const { outcome, verifiedIdle, sealed } = found
  const proved = outcome === 'idle' && verifiedIdle && sealed
  if (proved && !opened) {
    // A reload after the idle forgets the seal for a moment: what comes in that gap is no false idle.
    await until(async () => (await stage.status(pool, name)) === 'MAINT', 'sealed')
    const before = { total: backend.total, reloads: stage.reloads }
    await new Promise((resolve) => setTimeout(resolve, 300))
    const whole = before.reloads === stage.reloads && before.reloads % 2 === 0
    if (whole && backend.total !== before.total && fault === undefined)
      fault = `${backend.total - before.total} came after a sealed idle`
  }
  await drained.restore()
  // What the operator has set is left alone by it, and by whom it is to be given back.
  await until(async () => {
    await stage.ask(`set server ${pool}/${name} state ready`)
    return (await stage.status(pool, name)) === 'no check'
  }, 'ready')
  return {
    outcome: `${outcome}${verifiedIdle ? '' : ', unverified'}`,
    proved,
    ...(fault && { fault }),
  }
}
