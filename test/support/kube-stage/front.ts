/** The balancer of a stage: in front of the pods, and in the hands of the controller. */
import type { Backend } from '../haproxy-traffic.js'

export interface Front extends AsyncDisposable {
  /** Where clients send to. */
  readonly port: number
  /** Where those of another Service of the same pods do, if it has the pool `api`. */
  readonly apiPort?: number
  /** The program that keeps its servers, in `examples` or beside the stage, and how it is told where they are. */
  readonly controller: string
  readonly env: Readonly<Record<string, string>>
  /** The pods that it has from the beginning: `web-1` and so on. */
  readonly pods: readonly Backend[]
  /** The address of the nth pod, as the cluster has it. */
  addressOf(n: number): string
  /** Starts what a pod at that place runs. */
  startPod(name: string, n: number): Promise<Backend>
  /**
   * How it has the server of a pod: `no check` for one that serves, `DRAIN` or `MAINT` for one that does not; '' for none.
   *
   * @param address - the pod's, as the cluster has it
   */
  statusOf(pod: string, address: string): Promise<string>
  /** The same by the address alone. */
  statusAt(address: string): Promise<string>
  /** What people write without this library: makes these the servers of a pool, and takes out all others. */
  replace(pool: string, ready: ReadonlyMap<string, string>): Promise<void>
}

export function podNames(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `web-${i + 1}`)
}
