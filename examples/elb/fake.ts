/** A target group in memory: what an adapter is tested with that talks through a vendor's client. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { AdminState, MemberRef } from 'drainable/provider'
import type { Target, TargetGroup } from './adapter.ts'

export class FakeTargetGroup implements TargetGroup {
  readonly #instances: ReadonlyMap<string, Target>
  readonly #targets = new Map<string, Target>()
  readonly #delay: number
  #reachable = true
  calls = 0

  /** @param delay - the deregistration delay, in milliseconds */
  constructor(instances: readonly string[], delay = 20) {
    const all = instances.map((id, i) => ({ id, ip: `10.0.0.${i + 1}`, port: 80 }))
    this.#instances = new Map(all.map((one) => [one.id, { ...one, state: 'healthy' }]))
    for (const id of instances) this.#set(id, 'healthy')
    this.#delay = delay
  }

  async health(signal: AbortSignal): Promise<readonly Target[]> {
    await this.#call(signal)
    return [...this.#targets.values()]
  }

  async register(id: string, signal: AbortSignal): Promise<void> {
    await this.#call(signal)
    this.#set(id, 'healthy')
  }

  async deregister(id: string, signal: AbortSignal): Promise<void> {
    await this.#call(signal)
    this.#drain(id)
  }

  /** As another client would, at the console. */
  setBehind({ member }: MemberRef, to: AdminState | 'gone'): void {
    if (to === 'gone') this.#targets.delete(member)
    else if (to === 'ready') this.#set(member, 'healthy')
    else this.#drain(member)
  }

  unplug(): void {
    this.#reachable = false
  }

  #set(id: string, state: Target['state']): void {
    const instance = this.#instances.get(id)
    if (instance === undefined) throw new Error(`ValidationError: no instance ${id}`)
    this.#targets.set(id, { ...instance, state })
  }

  #drain(id: string): void {
    this.#set(id, 'draining')
    const over = (): void => {
      if (this.#targets.get(id)?.state === 'draining') this.#set(id, 'unused')
    }
    setTimeout(over, this.#delay).unref()
  }

  async #call(signal: AbortSignal): Promise<void> {
    this.calls += 1
    await sleep(1, undefined, { signal }).catch(() => signal.throwIfAborted())
    if (!this.#reachable)
      throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  }
}
