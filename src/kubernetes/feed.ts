/**
 * The objects of one path, kept whole: a list, then a watch from its version on, for as long as it runs.
 *
 * - A watch is asked for 25 s and given up after 30 s without a byte, so no silence is longer than that. A watch that
 *   ends in order goes on from the newest version, of an object or a bookmark.
 * - `410 Gone`, as a reply or inside the watch, means that this version is forgotten: a new list is due.
 * - After any other failure the watch is tried again from where it was, and after three in a row a new list is due.
 */
import type { IncomingMessage } from 'node:http'
import { StringDecoder } from 'node:string_decoder'
import { pause, type Clock } from '../provider/clock.js'
import { DrainableError, isDrainableError } from '../provider/error.js'
import { CALL_LIMIT, lost, malformed, refused, type KubeApi, type KubeObject } from './api.js'

/** Which objects. */
export interface FeedSpec {
  /** For messages: `EndpointSlices in shop`. */
  readonly what: string
  readonly path: string
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
  /** What gives the right to read them, for the message where it is missing. */
  readonly rule?: string
  /** Whether it goes without them: a right that is missing is asked for again after five minutes. */
  readonly optional?: true
}

/** Who is told. */
export interface FeedListener {
  /** One object came, changed or went, as a watch says, or a new list beside the last one. */
  changed?(before: KubeObject | undefined, after: KubeObject | undefined): void
  /** What there is to be told is told: of one event, or of a whole list. */
  told(): void
  /** A call failed, or, with undefined, all is well again. */
  failed(error: DrainableError | undefined): void
}

const WATCH_SECONDS = 25
/** Waits between two attempts, in milliseconds: doubled each time, and up to a half of each is left to chance. */
const RETRY_FROM = 500
const RETRY_TO = 5_000
/** A right that is missing is rarely given while a program runs: where it goes without, the wait is that long. */
const FORBIDDEN_PAUSE = 300_000
/** So many failures in a row make a new list due. */
const MOST_FAILURES = 3
/** A watch that ends sooner than this counts as a failure for the next wait, or it would be asked without a pause. */
const SHORT_WATCH = 1_000
/** The longest line of a watch, in characters. etcd takes objects up to about 1.5 MiB. */
const MOST_CHARACTERS = 16 * 1024 * 1024

export class Feed {
  /** Settles when its signal has fired. */
  readonly done: Promise<void>
  readonly #api: KubeApi
  readonly #spec: FeedSpec
  readonly #listener: FeedListener
  readonly #signal: AbortSignal
  readonly #clock: Clock
  #items = new Map<string, KubeObject>()
  /** Up to which the items are known: of the list, an object or a bookmark. Undefined: a list is due. */
  #version: string | undefined
  #known = false
  #synced = false
  #error: DrainableError | undefined
  #failures = 0

  constructor(
    api: KubeApi,
    spec: FeedSpec,
    listener: FeedListener,
    signal: AbortSignal,
    clock: Clock,
  ) {
    this.#api = api
    this.#spec = spec
    this.#listener = listener
    this.#signal = signal
    this.#clock = clock
    this.done = this.#run()
  }

  /** All objects, as known last; never a part of a list. */
  get items(): ReadonlyMap<string, KubeObject> {
    return this.#items
  }

  /** Whether a whole list was read. */
  get known(): boolean {
    return this.#known
  }

  /** Whether it is whole, and watched now. */
  get synced(): boolean {
    return this.#synced
  }

  /** Why the last call failed; undefined if all is well. */
  get error(): DrainableError | undefined {
    return this.#error
  }

  async #run(): Promise<void> {
    while (!this.#isOver()) {
      const began = this.#clock.now()
      try {
        this.#version ??= await this.#list()
        await this.#watch(this.#version)
        const wasShort = this.#clock.now() - began < SHORT_WATCH
        if (wasShort) await this.#pause(SHORT_WATCH)
        else this.#failures = 0
      } catch (error) {
        if (this.#isOver()) return
        this.#fail(error)
        // Of a server that was set up anew from a backup the version never comes: it is behind.
        if (this.#failures >= MOST_FAILURES) this.#version = undefined
        await this.#pause(this.#waitAfter(error))
      }
    }
  }

  #isOver(): boolean {
    return this.#signal.aborted
  }

  async #pause(ms: number): Promise<void> {
    await pause(this.#clock, ms, this.#signal).catch(() => undefined)
  }

  #waitAfter(error: unknown): number {
    if (this.#spec.optional === true && isDrainableError(error, 'FORBIDDEN')) return FORBIDDEN_PAUSE
    const longest = Math.min(RETRY_TO, RETRY_FROM * 2 ** this.#failures)
    this.#failures += 1
    return longest * (0.5 + Math.random() / 2)
  }

  #fail(error: unknown): void {
    const { what, rule } = this.#spec
    const said = lost({ what, path: '' }, error)
    const { code, message } = said
    const isRuled = code === 'FORBIDDEN' && rule !== undefined
    this.#synced = false
    this.#error = isRuled ? new DrainableError(code, `${message}; ${rule}`, { cause: said }) : said
    this.#listener.failed(this.#error)
  }

  #mended(): void {
    this.#synced = true
    if (this.#error === undefined) return
    this.#error = undefined
    this.#listener.failed(undefined)
  }

  /** Reads everything, and takes it in only when it is whole. */
  async #list(): Promise<string> {
    const { what, path, labelSelector, fieldSelector } = this.#spec
    const call = { what: `list ${what}`, path, query: { labelSelector, fieldSelector } }
    const { kept, version } = await this.#api.list(call, this.#signal, slim)
    const before = this.#items
    this.#items = new Map(kept.map((one) => [keyOf(one), one]))
    this.#known = true
    this.#mended()
    for (const [key, one] of before)
      if (!this.#items.has(key)) this.#listener.changed?.(one, undefined)
    for (const [key, one] of this.#items) this.#listener.changed?.(before.get(key), one)
    this.#listener.told()
    return version
  }

  /** Watches until the API server ends it. */
  async #watch(from: string): Promise<void> {
    const { what, path, labelSelector, fieldSelector } = this.#spec
    const query = {
      ...{ labelSelector, fieldSelector, resourceVersion: from },
      ...{ watch: '1', allowWatchBookmarks: 'true', timeoutSeconds: String(WATCH_SECONDS) },
    }
    const call = { what: `watch ${what}`, path, query }
    const stream = await this.#api.watch(call, this.#signal)
    if ('status' in stream) {
      if (stream.status !== 410) throw refused(call, stream)
      this.#version = undefined
      return
    }
    this.#mended()
    for await (const line of this.#linesOf(stream, call.what)) {
      const event = parseEvent(line, call.what)
      if (event.type === 'ERROR') {
        const status = Number(event.object['code'] ?? 0)
        if (status !== 410) throw refused(call, { status, object: event.object })
        this.#version = undefined
        return
      }
      if (event.type !== 'BOOKMARK') this.#take(event)
      // At once: a watch that breaks off would otherwise tell of older states again.
      this.#version = event.object.metadata?.resourceVersion ?? this.#version
    }
  }

  #take({ type, object }: WatchEvent): void {
    const key = keyOf(object)
    const before = this.#items.get(key)
    const after = type === 'DELETED' ? undefined : slim(object)
    if (after === undefined) this.#items.delete(key)
    else this.#items.set(key, after)
    this.#listener.changed?.(before, after)
    this.#listener.told()
  }

  /** The lines of a watch, until it ends; it is given up after 30 s without a byte. */
  async *#linesOf(stream: IncomingMessage, what: string): AsyncGenerator<string, void, undefined> {
    const decoder = new StringDecoder('utf8')
    const silent = new DrainableError('CALL_TIMEOUT', `${what}: nothing came for 30 s`)
    const listen = (): (() => void) =>
      this.#clock.setTimeout(() => stream.destroy(silent), CALL_LIMIT)
    let cancel = listen()
    let rest = ''
    try {
      for await (const part of stream as AsyncIterable<Buffer>) {
        cancel()
        cancel = listen()
        const lines = (rest + decoder.write(part)).split('\n')
        rest = lines.pop() ?? ''
        if (rest.length > MOST_CHARACTERS) throw malformed({ what, path: '' }, 'a line without end')
        for (const line of lines) if (line !== '') yield line
      }
    } catch (error) {
      throw lost({ what, path: '' }, error)
    } finally {
      cancel()
      stream.destroy()
    }
  }
}

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: KubeObject
}

function parseEvent(line: string, what: string): WatchEvent {
  try {
    const { type, object } = JSON.parse(line) as Partial<WatchEvent>
    if (type !== undefined && typeof object === 'object') return { type, object }
  } catch {
    // said below
  }
  throw malformed({ what, path: '' }, `'${line.slice(0, 100)}'`)
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`
}

/** Without who wrote which field, and the images of a Node: most of an object, and nobody reads it here. */
function slim(object: KubeObject): KubeObject {
  const metadata = { ...object.metadata, managedFields: undefined }
  const { status } = object
  if (typeof status !== 'object' || !Object.hasOwn(status ?? {}, 'images'))
    return { ...object, metadata }
  return { ...object, metadata, status: { ...status, images: undefined } }
}
