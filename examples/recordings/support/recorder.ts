/**
 * What the recordings have in common: a device that is asked by GET alone, and a record without anything of yours.
 *
 * A record has times, counters and words of the product. Names, addresses and messages of the device leave it only as
 * `pool-1`, `member-2` or `<ip>`; user and password never do.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { HttpClient, type HttpReply } from 'drainable/kit'

const {
  RECORD_URL,
  RECORD_USER = '',
  RECORD_PASSWORD = '',
  RECORD_CA,
  RECORD_PIN,
  RECORD_SECONDS,
} = process.env

/** A device, or the stand-in where none is named. */
export interface Device extends AsyncDisposable {
  readonly url: string
  readonly username: string
  readonly password: string
  readonly ca: string
  readonly isStandIn: boolean
}

/**
 * The device of RECORD_URL, RECORD_USER and RECORD_PASSWORD; without a URL what `standIn` starts. Its certificate is verified
 * by the PEM file RECORD_CA, or pinned by its SHA-256 fingerprint RECORD_PIN.
 */
export async function device(standIn: () => Promise<Omit<Device, 'isStandIn'>>): Promise<Device> {
  if (RECORD_URL === undefined) {
    const fake = await standIn()
    const { url, username, password, ca } = fake
    const end = (): PromiseLike<void> => fake[Symbol.asyncDispose]()
    return { url, username, password, ca, isStandIn: true, [Symbol.asyncDispose]: end }
  }
  return {
    url: RECORD_URL,
    username: RECORD_USER,
    password: RECORD_PASSWORD,
    ca: RECORD_CA ?? '',
    isStandIn: false,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

/** One value of a record. */
type Value = string | number | boolean | null | readonly Value[] | { readonly [key: string]: Value }

/** Asks a device by GET, and prints a record, one line of JSON each. */
export class Recorder implements AsyncDisposable {
  readonly #client: HttpClient
  readonly #headers: Readonly<Record<string, string>>
  readonly #aliases = new Map<string, string>()
  readonly #began = performance.now()
  readonly #until: number

  constructor(
    { url, username, password, ca, isStandIn }: Device,
    auth: 'basic' | 'nitro',
    seconds: number,
  ) {
    const trust = RECORD_PIN === undefined ? { ca } : { fingerprint256: RECORD_PIN }
    const tls = ca === '' && RECORD_PIN === undefined ? {} : { tls: trust }
    this.#client = new HttpClient({ provider: 'recording', url, ...tls, callTimeout: 15_000 })
    const basic = Buffer.from(`${username}:${password}`).toString('base64')
    this.#headers =
      auth === 'basic'
        ? { authorization: `Basic ${basic}` }
        : { 'x-nitro-user': username, 'x-nitro-pass': password }
    const wished = RECORD_SECONDS === undefined ? (isStandIn ? 2 : seconds) : Number(RECORD_SECONDS)
    this.#until = this.#began + wished * 1_000
  }

  /** Milliseconds since the recording began. */
  get at(): number {
    return Math.round(performance.now() - this.#began)
  }

  /** Asks, and never anything else than GET. */
  get(path: string): Promise<HttpReply> {
    const clock = {
      now: () => performance.now(),
      setTimeout(fn: () => void, ms: number): () => void {
        const timer = setTimeout(fn, ms)
        return () => clearTimeout(timer)
      },
    }
    const { signal } = new AbortController()
    return this.#client.call({ method: 'GET', path, headers: this.#headers, clock, signal })
  }

  /** The objects under a key of an answer; none where it has none. */
  async rows(path: string, key: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const { text } = await this.get(path)
    const body = JSON.parse(text) as Readonly<Record<string, unknown>>
    const found = body[key]
    const list: readonly unknown[] = Array.isArray(found)
      ? found
      : found === undefined
        ? []
        : [found]
    return list.map((one) => Object(one) as Readonly<Record<string, unknown>>)
  }

  /** The same alias for the same name each time: `member-1`. */
  alias(kind: string, name: string): string {
    const key = `${kind} ${name.toLowerCase()}`
    const known = this.#aliases.get(key)
    if (known !== undefined) return known
    const count = [...this.#aliases.keys()].filter((other) => other.startsWith(`${kind} `)).length
    const alias = `${kind}-${count + 1}`
    this.#aliases.set(key, alias)
    return alias
  }

  /** Prints one line. */
  say(record: Readonly<Record<string, Value>>): void {
    console.log(JSON.stringify(record))
  }

  /** Does something again and again until the time is over. */
  async every(ms: number, ask: () => Promise<void>): Promise<void> {
    while (performance.now() < this.#until) {
      const begin = performance.now()
      await ask()
      await sleep(Math.max(0, begin + ms - performance.now()))
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.close()
  }
}

/** Words of a device without names, addresses, paths and numbers that could be somebody's. */
export function anonymous(words: string): string {
  return words
    .replace(/<[^>]*>/g, ' ')
    .replace(/\b[\w.+-]+@[\w.-]+\b/g, '<name>')
    .replace(/https?:\/\/[^\s"']+/gi, '<url>')
    .replace(/\[?[0-9a-f]*:[0-9a-f:.]*:[0-9a-f:.]+\]?(%\d+)?/gi, '<ip>')
    .replace(/\d{1,3}(\.\d{1,3}){3}(%\d+)?/g, '<ip>')
    .replace(/(\/[\w.~%-]+){2,}/g, '<path>')
    .replace(/[0-9a-f]{8}-[0-9a-f-]{20,}|\b[0-9A-Z]{20,}\b/gi, '<id>')
    .replace(/user[\s=:]+\S+/gi, 'user <name>')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, 300)
}

/** A counter or gauge as it stands, a number or a text of digits; null where there is none. */
export function figure(value: unknown): string | null {
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : ''
  return /^\d+(\.\d+)?$/.test(text) ? text : null
}

/** A state of the product: letters and spaces, no name. */
export function word(value: unknown): string | null {
  return typeof value === 'string' && /^[A-Z_ -]{1,40}$/i.test(value) ? value : null
}
