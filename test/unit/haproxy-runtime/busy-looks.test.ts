import { haproxyRuntime } from 'drainable/haproxy-runtime'
import type { CallContext, DrainableProvider, MemberRef, Snapshot } from 'drainable/provider'
import { type HaproxyFake, startFake } from 'drainable/testing/haproxy-runtime'
import { describe, expect, it } from 'vitest'
import { GLANCE } from '../../../src/adapters/haproxy-runtime/session/busy-looks.js'
import { context, WEB1, WEB2 } from './rig.js'

/** How long the kept connection may take here, on a loaded machine too, ms. */
const PATIENCE = 15_000

/** A drained member with work in flight, that whole looks have shown; time passes by hand. */
class Busy implements AsyncDisposable {
  readonly fake: HaproxyFake
  readonly lb: DrainableProvider
  readonly end: () => Promise<void>
  readonly #clock: { now: number }
  #patience = PATIENCE

  private constructor(
    fake: HaproxyFake,
    lb: DrainableProvider,
    end: () => Promise<void>,
    clock: { now: number },
  ) {
    this.fake = fake
    this.lb = lb
    this.end = end
    this.#clock = clock
  }

  static async start({ master = true, servers = ['web1', 'web2'] } = {}): Promise<Busy> {
    const fake = await startFake({ pools: { web: servers }, master })
    const lb = haproxyRuntime({
      socket: fake.socket,
      ...(fake.master === undefined ? {} : { master: fake.master }),
    })
    const end = await fake.occupy(WEB1)
    const busy = new Busy(fake, lb, end, { now: 1_000 })
    await lb.apply([{ kind: 'hold', to: 'drain', ref: WEB1 }], busy.context)
    await busy.look()
    return busy
  }

  get context(): CallContext {
    const { signal, clock } = context()
    const setTimeout: typeof clock.setTimeout = (fn, ms) =>
      clock.setTimeout(fn, ms === GLANCE ? this.#patience : ms)
    return { signal, clock: { now: () => this.#clock.now, setTimeout } }
  }

  /** The next look over the kept connection gets no answer, and is given up after its own time. */
  silence(): void {
    this.#patience = GLANCE
    this.fake.fail({ match: /^show info float$/, how: 'silent', times: 1 })
  }

  pass(ms: number): void {
    this.#clock.now += ms
  }

  look(refs: readonly MemberRef[] = [WEB1]): Promise<Snapshot> {
    return this.lb.observe(refs, this.context)
  }

  /** How often the master, and the process over a new connection, were asked during some work. */
  async asked(work: () => Promise<unknown>): Promise<{ master: number; anew: number }> {
    const from = this.fake.requests.length
    await work()
    const lines = this.fake.requests.slice(from).map(({ line }) => line)
    const count = (pattern: RegExp): number => lines.filter((line) => pattern.test(line)).length
    return { master: count(/^show proc/), anew: count(/^show info float;/) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lb.close()
    await this.fake.close()
  }
}

const NOTHING = { master: 0, anew: 0 }

describe('a look at a busy member', () => {
  it('goes over the kept connection, and counts what is in flight', async () => {
    await using busy = await Busy.start()
    const asked = await busy.asked(async () => {
      for (const more of [2, 3, 4]) {
        busy.pass(10)
        await busy.fake.occupy(WEB1)
        const [scope] = (await busy.look()).readings[0]!.scopes
        expect(scope).toMatchObject({ state: 'read', active: more, inForce: true })
      }
    })
    expect(asked).toEqual(NOTHING)
  })

  it('is a whole one four times a second', async () => {
    await using busy = await Busy.start()
    busy.pass(249)
    expect(await busy.asked(() => busy.look())).toEqual(NOTHING)
    busy.pass(1)
    expect(await busy.asked(() => busy.look())).toEqual({ master: 1, anew: 1 })
    busy.pass(249)
    expect(await busy.asked(() => busy.look())).toEqual(NOTHING)
  })

  it('is a whole one as soon as the member is at zero', async () => {
    await using busy = await Busy.start()
    await busy.end()
    let seen: Snapshot | undefined
    expect(await busy.asked(async () => (seen = await busy.look()))).toEqual({ master: 1, anew: 1 })
    expect(seen).toMatchObject({ ended: 'unlisted' })
    expect(seen?.readings[0]?.scopes[0]).toMatchObject({ active: 0, queued: 0 })
    expect(await busy.asked(() => busy.look())).toEqual({ master: 1, anew: 1 })
  })

  it('is a whole one as long as any member that it is for is at zero', async () => {
    await using busy = await Busy.start()
    for (let count = 0; count < 2; count += 1)
      expect(await busy.asked(() => busy.look([WEB1, WEB2]))).toEqual({ master: 1, anew: 1 })
  })

  it('is a whole one after a change', async () => {
    await using busy = await Busy.start()
    await busy.lb.apply([{ kind: 'hold', to: 'maint', ref: WEB1 }], busy.context)
    expect(await busy.asked(() => busy.look())).toEqual({ master: 1, anew: 1 })
    expect(await busy.asked(() => busy.look())).toEqual(NOTHING)
  })

  it('finds a reload at once', async () => {
    await using busy = await Busy.start()
    await busy.fake.reload()
    expect((await busy.look()).readings[0]).toMatchObject({ own: 'ready' })
    // The old process is known now: every look is a whole one.
    expect(await busy.asked(() => busy.look())).toMatchObject({ master: 1 })
  })

  it('finds a reload also if the kept connection is silent', async () => {
    await using busy = await Busy.start()
    busy.silence()
    await busy.fake.reload()
    expect((await busy.look()).readings[0]).toMatchObject({ own: 'ready' })
  })

  it('is a whole one if the kept connection does not answer', async () => {
    await using busy = await Busy.start()
    busy.silence()
    expect(await busy.asked(() => busy.look())).toMatchObject({ anew: 1 })
    // An answer is owed there: the next look does not wait for it.
    expect(await busy.asked(() => busy.look())).toMatchObject({ anew: 1 })
  })

  it('is a whole one if the kept connection breaks', async () => {
    await using busy = await Busy.start()
    busy.fake.fail({ match: /^show info float$/, how: 'reset', times: 1 })
    const { readings } = await busy.look()
    expect(readings[0]?.scopes[0]).toMatchObject({ state: 'read', active: 1 })
  })

  it('is a whole one always, without a master', async () => {
    await using busy = await Busy.start({ master: false })
    for (let count = 0; count < 2; count += 1)
      expect(await busy.asked(() => busy.look())).toEqual({ master: 0, anew: 1 })
  })

  it('is a whole one always, for more than twenty members', async () => {
    const servers = Array.from({ length: 21 }, (_, index) => `web${index + 1}`)
    await using busy = await Busy.start({ servers })
    const refs = servers.map((member) => ({ pool: 'web', member }))
    for (const ref of refs.slice(1)) await busy.fake.occupy(ref)
    await busy.look(refs)
    expect(await busy.asked(() => busy.look(refs))).toMatchObject({ anew: 1 })
    expect(await busy.asked(() => busy.look(refs.slice(0, 20)))).toEqual(NOTHING)
  })
})
