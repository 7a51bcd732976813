import type { Samples } from './judge/samples.js'
import { Random } from './random.js'
import { runsOn } from './user/host.js'
import type { User } from './user/user.js'
import type { ControlPlane } from './world/control-plane.js'

/** Longest time for which a state contradicts itself, in milliseconds. */
const LONG = 20_000

/**
 * What lasts, beside the mishaps of a scenario: other machines, states that contradict themselves, looks that fail for
 * good. They have random numbers of their own, so that the rest of a story stays what it was.
 */
export class Disturbances {
  readonly #random: Random
  readonly #plane: ControlPlane
  readonly #samples: Samples
  readonly #machines: boolean
  readonly #kinds: readonly (() => void)[]
  #boots = 0

  constructor(seed: number, plane: ControlPlane, samples: Samples) {
    const random = new Random(seed ^ 0x2b0f5a)
    this.#random = random
    this.#plane = plane
    this.#samples = samples
    this.#machines = random.chance(0.4)
    this.#kinds = [
      ...(random.chance(0.4) ? [() => this.#contradict()] : []),
      ...(random.chance(0.4) ? [() => this.#failForGood()] : []),
    ]
  }

  /** Steps are seldom in a story, and two processes too: here they are begun. */
  begin(another: () => User): void {
    if (this.#machines && this.#random.chance(0.5)) another().steps()
  }

  /** A process that begins is on another machine, or another boot, at times; steps go to and fro between them. */
  joins(user: User, all: () => readonly User[]): void {
    if (!this.#machines) return
    const random = this.#random
    if (random.chance(0.6)) {
      this.#boots += 1
      const machine = {
        ahead: random.int(-12_000, 12_000),
        older: random.int(-4_000_000, 4_000_000),
        boot: `boot ${this.#boots}`,
      }
      runsOn(user.process.globals, machine)
      this.#plane.truth.figures.add('world: another machine')
      this.#plane.truth.tell(`${user.process.name} runs on ${JSON.stringify(machine)}`)
    }
    user.handsOver = () => (random.chance(0.4) ? random.pick(all()) : undefined)
  }

  /** Between two actions of a story. */
  strike(): void {
    if (this.#kinds.length > 0 && this.#random.chance(0.2)) this.#random.pick(this.#kinds)()
  }

  #contradict(): void {
    const { truth } = this.#plane
    const key = this.#random.pick([...truth.members.keys()])
    const ms = this.#random.int(1_000, LONG)
    truth.figures.add('world: a state contradicts itself')
    truth.tell(`the state of ${key} contradicts itself for ${ms} ms`)
    this.#samples.contradictsUntil.set(key, truth.clock.now() + ms)
  }

  #failForGood(): void {
    const { truth } = this.#plane
    const ms = this.#random.int(1, 4_000)
    truth.figures.add('world: looks fail for good')
    truth.tell(`looks fail for good for ${ms} ms`)
    this.#plane.failingForGoodUntil = truth.clock.now() + ms
  }
}
