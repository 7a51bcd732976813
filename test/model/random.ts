/** Random numbers from a seed (mulberry32): one seed, one story. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0
  }

  /** From 0 up to, but without, 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  /** A whole number, both ends included. */
  int(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1))
  }

  chance(share: number): boolean {
    return this.next() < share
  }

  pick<T>(list: readonly T[]): T {
    if (list.length === 0) throw new Error('nothing to pick from')
    return list[Math.floor(this.next() * list.length)] as T
  }

  /** One or more of a list, in its order. */
  some<T>(list: readonly T[], most: number): T[] {
    const wanted = Math.min(list.length, this.int(1, most))
    const left = [...list]
    while (left.length > wanted) left.splice(this.int(0, left.length - 1), 1)
    return left
  }

  /** One of a list, by weights. */
  weighted<T>(list: readonly (readonly [T, number])[]): T | undefined {
    let at = this.next() * list.reduce((sum, [, weight]) => sum + weight, 0)
    return list.find(([, weight]) => (at -= weight) < 0)?.[0]
  }

  /** A stream of its own, so that what one part draws does not move the others. */
  fork(): Random {
    return new Random(Math.floor(this.next() * 4_294_967_296))
  }
}
