import { haproxyRuntime } from 'drainable/haproxy-runtime'
import type { CallContext, DrainableProvider, MemberRef, Snapshot } from 'drainable/provider'
import { type HaproxyFake, startFake } from 'drainable/testing/haproxy-runtime'
import { describe, expect, it } from 'vitest'
import { context, WEB1, WEB2 } from './rig.js'

/** A drained member with work in flight, that whole looks have shown; time passes by hand. */
class Busy implements AsyncDisposable {
  readonly fake: HaproxyFake
  readonly lb: DrainableProvider
  readonly end: () => Promise<void>
  #now = 1_000

  private constructor(fake: HaproxyFake, lb: DrainableProvider, end: () => Promise<void>) {
    this.fake = fake
    this.lb = lb
    this.end = end
  }

  static async start(): Promise<Busy> {
    const fake = await startFake({ pools: { web: ['web1', 'web2'] }, master: true })
    const lb = haproxyRuntime({ socket: fake.socket, master: fake.master })
    const busy = new Busy(fake, lb, await fake.occupy(WEB1))
    await lb.apply([{ kind: 'hold', to: 'drain', ref: WEB1 }], busy.context)
    await busy.look()
    return busy
  }

  get context(): CallContext {
    const { signal, clock } = context()
    return { signal, clock: { ...clock, now: () => this.#now } }
  }

  pass(ms: number): void {
    this.#now += ms
  }

  look(refs: readonly MemberRef[] = [WEB1]): Promise<Snapshot> {
    return this.lb.observe(refs, this.context)
  }

  /** How often the master was asked during some work. */
  async asked(work: () => Promise<unknown>): Promise<number> {
    const from = this.fake.requests.length
    await work()
    return this.fake.requests.slice(from).filter(({ line }) => /^show proc/.test(line)).length
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lb.close()
    await this.fake.close()
  }
}

describe('a look at a busy member', () => {
  it('leaves out the master, and counts what is in flight', async () => {
    await using busy = await Busy.start()
    const asked = await busy.asked(async () => {
      for (const more of [2, 3, 4]) {
        busy.pass(10)
        await busy.fake.occupy(WEB1)
        const [scope] = (await busy.look()).readings[0]!.scopes
        expect(scope).toMatchObject({ state: 'read', active: more, inForce: true })
      }
    })
    expect(asked).toBe(0)
  })

  it('asks the master four times a second', async () => {
    await using busy = await Busy.start()
    busy.pass(249)
    expect(await busy.asked(() => busy.look())).toBe(0)
    busy.pass(1)
    expect(await busy.asked(() => busy.look())).toBe(1)
    busy.pass(249)
    expect(await busy.asked(() => busy.look())).toBe(0)
  })

  it('asks the master as soon as the member is at zero', async () => {
    await using busy = await Busy.start()
    await busy.end()
    let seen: Snapshot | undefined
    expect(await busy.asked(async () => (seen = await busy.look()))).toBe(1)
    expect(seen).toMatchObject({ ended: 'unlisted' })
    expect(seen?.readings[0]?.scopes[0]).toMatchObject({ active: 0, queued: 0 })
    expect(await busy.asked(() => busy.look())).toBe(1)
  })

  it('asks the master as long as any member that it is for is at zero', async () => {
    await using busy = await Busy.start()
    for (let count = 0; count < 2; count += 1)
      expect(await busy.asked(() => busy.look([WEB1, WEB2]))).toBe(1)
  })

  it('asks the master after a change', async () => {
    await using busy = await Busy.start()
    await busy.lb.apply([{ kind: 'hold', to: 'maint', ref: WEB1 }], busy.context)
    expect(await busy.asked(() => busy.look())).toBe(1)
    expect(await busy.asked(() => busy.look())).toBe(0)
  })

  it('finds a reload at once', async () => {
    await using busy = await Busy.start()
    await busy.fake.reload()
    expect((await busy.look()).readings[0]).toMatchObject({ own: 'ready' })
    // The old process is known now: every look asks the master.
    expect(await busy.asked(() => busy.look())).toBe(1)
  })
})
