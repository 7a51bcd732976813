import { randomInt } from 'node:crypto'

/** One token as the device stores it; times are the device's, in microseconds. */
export interface Token {
  readonly token: string
  readonly userName: string
  timeout: number
  readonly startMicros: number
  lastUpdateMicros: number
  expirationMicros: number
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** The tokens of one unit, by its own clock, which need not be ours. */
export class Tokens {
  readonly #skew: number
  readonly #live = new Map<string, Token>()

  constructor(skew: number) {
    this.#skew = skew
  }

  /** Microseconds of the device's clock. */
  now(): number {
    return Math.round((Date.now() + this.#skew) * 1_000)
  }

  issue(userName: string, seconds: number): Token {
    const name = Array.from({ length: 26 }, () => LETTERS[randomInt(LETTERS.length)]).join('')
    const at = this.now()
    const token: Token = {
      token: name,
      userName,
      timeout: seconds,
      startMicros: at,
      lastUpdateMicros: at,
      expirationMicros: at + seconds * 1_000_000,
    }
    this.#live.set(name, token)
    return token
  }

  /** What the device says of a token: good, too old, or never heard of. */
  check(name: string): Token | 'expired' | 'unknown' {
    const token = this.#live.get(name)
    if (token === undefined) return 'unknown'
    return token.expirationMicros <= this.now() ? 'expired' : token
  }

  extend(token: Token, seconds: number): void {
    token.timeout = seconds
    token.lastUpdateMicros = this.now()
    token.expirationMicros = token.startMicros + seconds * 1_000_000
  }

  drop(name: string): boolean {
    return this.#live.delete(name)
  }

  clear(): void {
    this.#live.clear()
  }

  /** Live tokens of a user; those that expired are swept first. */
  count(userName?: string): number {
    for (const [name, token] of this.#live) {
      if (token.expirationMicros <= this.now()) this.#live.delete(name)
    }
    return [...this.#live.values()].filter((t) => userName === undefined || t.userName === userName)
      .length
  }

  list(): readonly Token[] {
    return [...this.#live.values()]
  }

  /** Makes every token too old at once. */
  expireAll(): void {
    for (const token of this.#live.values()) token.expirationMicros = this.now() - 1
  }
}
