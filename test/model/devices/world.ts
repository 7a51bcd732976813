import type { AdminState, MemberRef } from 'drainable/provider'
import type { IoClock } from '../../support/io-clock.js'
import type { Random } from '../random.js'
import { CHANGES, type Device } from './device.js'

/** How long clients and operators go on, in milliseconds. */
const LASTS = 60_000
/** A change of ours this long after another client's was decided by a look that showed it, in milliseconds. */
const KNOWN = 8_000

/** The truth of one member. */
export interface Member {
  readonly ref: MemberRef
  /** Ends each flow that is open. */
  readonly flows: Map<number, () => Promise<void>>
  arrivedAt: number
  /** The newest change by another client. */
  set: { readonly at: number; readonly to: AdminState; readonly over: AdminState } | undefined
  /** When the newest call of ours began that is about it. */
  calledAt: number
  /** What it was before the first call of ours. */
  state: AdminState
  /** What we have changed it to last, as far as was seen. */
  ours: AdminState | undefined
  isTarget: boolean
}

/** A device, its clients, its operator, and what goes wrong on the way to it. */
export class DeviceWorld {
  readonly device: Device
  readonly clock: IoClock
  readonly random: Random
  readonly members: readonly Member[]
  readonly faults: string[] = []
  readonly counts = new Map<string, number>()
  readonly #trace: ((line: string) => void) | undefined
  #flows = 0
  /** When a request failed last, or may have: a look after a change too, without which Citrix ADC's answer is not believed. */
  #troubledAt = -Infinity

  constructor(
    device: Device,
    clock: IoClock,
    random: Random,
    trace: ((line: string) => void) | undefined,
  ) {
    this.device = device
    this.clock = clock
    this.random = random
    this.#trace = trace
    this.members = device.members.map((ref) => ({
      ref,
      flows: new Map(),
      arrivedAt: -Infinity,
      set: undefined,
      calledAt: -Infinity,
      state: 'ready',
      ours: undefined,
      isTarget: false,
    }))
  }

  get now(): number {
    return this.clock.now()
  }

  /** Goes on until nobody changes anything any more. */
  async go(): Promise<void> {
    await Promise.all([
      ...this.members.map((member) => this.#clients(member)),
      this.#operator(),
      this.#troubles(),
      this.#watchStates(),
    ])
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.clock.setTimeout(resolve, ms))
  }

  /** The device sends work to a member that is ready, and seldom a client that comes back to one that drains. */
  async #clients(member: Member): Promise<void> {
    const random = this.random
    while (this.now < LASTS) {
      await this.sleep(random.int(100, 4_000))
      const state = await this.device.state(member.ref)
      const comesBack = random.chance(0.05) && this.device.persists
      const isSent = state === 'ready' || (state === 'drain' && comesBack)
      if (!isSent || member.flows.size > 2) continue
      const end = await this.device.work(member.ref)
      const id = (this.#flows += 1)
      member.arrivedAt = this.now
      member.flows.set(id, end)
      this.count('flows')
      const lasts = random.pick([10, 200, 1_000, 5_000, 15_000])
      void this.sleep(lasts).then(async () => {
        if (!member.flows.delete(id)) return
        await end()
      })
    }
  }

  async #operator(): Promise<void> {
    const random = this.random
    if (random.chance(0.5)) return
    for (let i = random.int(1, 2); i > 0; i -= 1) {
      await this.sleep(random.int(500, 30_000))
      const member = random.pick(this.members)
      const to = random.pick(['ready', 'drain', 'maint'] as const)
      const over = await this.device.state(member.ref)
      await this.device.set(member.ref, to)
      // A device can lead on from there by itself.
      member.state = await this.device.state(member.ref)
      member.set = { at: this.now, to: member.state, over }
      this.say(`operator: ${member.ref.member} ${over} -> ${to}`)
      this.count('operator')
    }
  }

  async #troubles(): Promise<void> {
    const random = this.random
    for (let i = random.int(0, 4); i > 0; i -= 1) {
      await this.sleep(random.int(50, 15_000))
      await this.#trouble()
    }
  }

  async #trouble(): Promise<void> {
    const random = this.random
    const what = random.pick(['requests', 'requests', 'requests', 'login', 'take over', 'away'])
    this.count(what)
    if (what === 'login') {
      this.say('every login ends')
      this.device.logOut()
      return
    }
    if (what === 'take over') {
      this.say('another unit or process takes over')
      for (const { flows } of this.members) flows.clear()
      const before = await Promise.all(this.members.map(({ ref }) => this.device.state(ref)))
      await this.device.takeOver()
      for (const [i, member] of this.members.entries()) {
        // What a reload forgets is nobody's change.
        const now = await this.device.state(member.ref)
        if (now !== before[i]) member.set = undefined
        member.state = now
      }
      return
    }
    if (what === 'away') {
      const end = this.device.fail({ how: 'refuse' })
      const lasts = random.int(100, 8_000)
      this.say(`nothing listens for ${lasts} ms`)
      this.#troubledAt = Infinity
      await this.sleep(lasts)
      await end()
      this.#troubledAt = this.now
      return
    }
    const how = random.pick(['reset', 'status', 'cut', 'garbage'] as const)
    const execute = random.chance(0.6)
    const later = execute && random.chance(0.3) ? random.int(10, 3_000) : 0
    const failure = {
      how,
      times: random.int(1, 3),
      skip: random.int(0, 2),
      ...(random.chance(0.7) && { match: CHANGES }),
      ...(how !== 'cut' && { execute }),
      ...(how === 'status' && { status: random.pick([401, 409, 500, 502, 503, 503, 504]) }),
      ...(how === 'status' && later > 0 && { executeAfter: later }),
    }
    this.say(`requests fail: ${JSON.stringify({ ...failure, match: 'match' in failure })}`)
    this.#troubledAt = Infinity
    const end = this.device.fail(failure)
    await this.sleep(random.int(1_000, 10_000))
    await end()
    this.#troubledAt = this.now
  }

  /** Notes when a state changes that no other client has changed. */
  async #watchStates(): Promise<void> {
    while (this.now < LASTS + 60_000) {
      for (const member of this.members) {
        const now = await this.device.state(member.ref)
        if (now === member.state) continue
        member.state = now
        this.say(`${member.ref.member} is ${now}`)
        const { set } = member
        if (!member.isTarget) this.fault('others', `${member.ref.member} is ${now} now`)
        else if (set !== undefined && this.#isTheirs(member, set)) {
          const after = this.now - set.at
          // A drain that goes on may raise what another client has drained.
          const isRaised = set.to === 'drain' && now === 'maint'
          if (after > KNOWN && now !== set.to && !isRaised)
            this.fault('operator', `${member.ref.member} is ${now}, ${after} ms after ${set.to}`)
        }
        member.ours = now
      }
      await this.sleep(50)
    }
  }

  /**
   * Whether nobody may change what another client has set: no call has begun since, and it can be told from what we have set, or
   * from a change of ours that was lost.
   */
  #isTheirs({ calledAt, ours }: Member, { at, to, over }: NonNullable<Member['set']>): boolean {
    return to !== over && to !== ours && calledAt < at && this.#troubledAt < calledAt
  }

  fault(rule: string, words: string): void {
    this.say(`FAULT ${rule}: ${words}`)
    this.faults.push(`${rule}: ${words}`)
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }

  say(line: string): void {
    this.#trace?.(`${this.now.toFixed(0).padStart(8)} ${line}`)
  }
}
