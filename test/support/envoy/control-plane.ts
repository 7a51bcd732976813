/** A control plane of another client: go-control-plane, as `examples/envoy-control-plane` has it. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Engine } from '../engines.js'

/** One endpoint of a set. */
export interface PlaneHost {
  readonly address: string
  readonly port: number
  readonly status?: string
}

/** Clusters with the names of their sets, and the sets. */
export interface PlaneSnapshot {
  readonly clusters: Readonly<Record<string, string>>
  readonly sets: Readonly<Record<string, readonly PlaneHost[]>>
}

export interface ControlPlane extends AsyncDisposable {
  readonly port: number
  /** Resolves when the snapshot is set; proxies take it after that. */
  set(snapshot: PlaneSnapshot): Promise<void>
  /** Ends it at once. */
  kill(): Promise<void>
  /** A new process at the same port. It serves nothing before its first snapshot. */
  start(): Promise<void>
}

/** @param nodes - the `node.id` of each proxy that it serves */
export async function startControlPlane(
  engine: Engine,
  nodes: readonly string[],
): Promise<ControlPlane> {
  let port = 0
  let version = 0
  let child: ChildProcess | undefined
  let lines: AsyncIterator<string> | undefined
  const kill = async (): Promise<void> => {
    const one = child
    child = undefined
    if (one === undefined || one.exitCode !== null || one.signalCode !== null) return
    one.kill('SIGKILL')
    await once(one, 'exit')
  }
  const said = async (what: string): Promise<string> => {
    const line = await lines?.next()
    if (line === undefined || line.done === true)
      throw new Error(`the control plane ended: ${what}`)
    return line.value
  }
  const start = async (): Promise<void> => {
    const one = spawn(engine.path, [String(port), ...nodes], { stdio: ['pipe', 'pipe', 'inherit'] })
    child = one
    lines = createInterface({ input: one.stdout })[Symbol.asyncIterator]()
    port = Number(await said('no port'))
  }
  await start()
  return {
    get port() {
      return port
    },
    set: async (snapshot) => {
      child?.stdin?.write(`${JSON.stringify({ version: String(++version), ...snapshot })}\n`)
      await said('no snapshot')
    },
    kill,
    start,
    [Symbol.asyncDispose]: kill,
  }
}
