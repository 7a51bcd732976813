import { createHash } from 'node:crypto'
import * as z from 'zod/mini'
import type { TicketStore } from '../core/tickets/store.js'
import { systemClock, type Clock } from '../provider/clock.js'
import { DrainableError } from '../provider/error.js'
import { clockOption } from '../provider/option-schemas.js'
import { once, parseOptions } from '../provider/options.js'
import { quote } from '../provider/quote.js'
import { KubeApi, type KubeConfigLike, type KubeObject } from './api.js'
import { kubeName } from './follow-options.js'

/** Options of {@link kubernetesTickets}. */
export interface KubernetesTicketsOptions {
  /** The namespace of the ConfigMaps: best one of its own, because a right is for all ConfigMaps of a namespace. */
  readonly namespace: string
  /** The clock of the limit. @defaultValue the system's */
  readonly clock?: Clock | undefined
}

/** A store for tickets that lists its keys. */
export interface KubernetesTickets extends TicketStore, AsyncDisposable {
  /** Lists every stored key, from any process. */
  keys(): Promise<readonly string[]>
  /**
   * Ends it: every call that waits for the API ends at once, so it does not keep a process alive that wants to end. Close
   * it after what uses it.
   */
  close(): Promise<void>
}

const schema = once(() =>
  z.strictObject({
    namespace: kubeName(),
    clock: z._default(clockOption(), () => systemClock),
  }),
)

/** Marks a ticket; lists go by it. */
const LABEL = 'drainable/ticket'
/** Holds the key: names of objects have no room for all of it. */
const ANNOTATION = 'drainable/key'
const FIELD = 'ticket.json'
/** How many texts without an answer are kept of a key: while the API is away, each try is one more. */
const MOST_UNANSWERED = 10
/** How long a call may wait for its turn, and then for each answer, in milliseconds: whoever asked has long given up then. */
const LIMIT = 10_000
/** Only names and annotations of what is listed: a ticket has several kilobytes. */
const METADATA_ONLY = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'

/**
 * Makes a store for tickets in ConfigMaps, one a ticket, so that every replica of a controller finds them.
 *
 * A ticket that this store has read or written is written again only if nobody else did meanwhile (`resourceVersion`);
 * otherwise `set` and `delete` reject with `CONFLICT` once, and the next call goes by what is there then. A change whose
 * answer was lost is recognised by its content.
 *
 * A call ends after 10 s without an answer, and all of them end at once when the store is closed.
 *
 * The account needs `get`, `list`, `create`, `update` and `delete` of `configmaps` in the namespace. A ticket holds no
 * secret; a ConfigMap takes about 1 MiB.
 *
 * @param config - a `KubeConfig` of `@kubernetes/client-node`
 * @throws `INVALID_OPTIONS`; each call of the store rejects with the error of the API
 *
 * @example
 * ```ts
 * import type { TicketStore } from 'drainable'
 * import { kubernetesTickets, type KubeConfigLike } from 'drainable/kubernetes'
 *
 * export function storeOf(config: KubeConfigLike): TicketStore {
 *   return kubernetesTickets(config, { namespace: 'edge' })
 * }
 * ```
 */
export function kubernetesTickets(
  config: KubeConfigLike,
  options: KubernetesTicketsOptions,
): KubernetesTickets {
  const subject = 'kubernetesTickets()'
  const { namespace, clock } = parseOptions(schema(), options, subject)
  const api = new KubeApi(config, subject, { clock, limit: LIMIT, kept: true })
  return new ConfigMapTickets(api, namespace, clock)
}

/** What this store knows of one key. */
interface Known {
  /** The version that was read or written last; undefined if the key was not there. */
  readonly version: string | undefined
  /** The last texts whose writing got no answer: one of them may be there. An older one that is would be a `CONFLICT`. */
  readonly unanswered: readonly string[]
}

class ConfigMapTickets implements KubernetesTickets {
  readonly #api: KubeApi
  readonly #namespace: string
  readonly #clock: Clock
  readonly #path: string
  readonly #known = new Map<string, Known>()
  /** The last change of each key: changes of one key go one after another. */
  readonly #turns = new Map<string, Promise<unknown>>()
  /** No call of a store takes a signal: each ends by its limit, or with the store. */
  readonly #stop = new AbortController()

  constructor(api: KubeApi, namespace: string, clock: Clock) {
    this.#api = api
    this.#namespace = namespace
    this.#clock = clock
    this.#path = `/api/v1/namespaces/${namespace}/configmaps`
  }

  get(key: string): Promise<unknown> {
    return this.#inTurn(key, async () => {
      const found = await this.#read(key)
      const known = this.#known.get(key)
      // A writing without an answer can still arrive as long as the version that it stands on is there.
      const mayArrive = known !== undefined && known.version === found?.version
      const unanswered = mayArrive ? known.unanswered : []
      this.#note(key, { version: found?.version, unanswered })
      return found === undefined ? undefined : parseTicket(found.text)
    })
  }

  set(key: string, value: unknown): Promise<void> {
    const text = JSON.stringify(value)
    return this.#inTurn(key, () => this.#write(key, text))
  }

  delete(key: string): Promise<void> {
    return this.#inTurn(key, () => this.#remove(key))
  }

  async keys(): Promise<readonly string[]> {
    const what = `list tickets in ${this.#namespace}`
    const query = { labelSelector: LABEL }
    const call = { what, path: this.#path, query, accept: METADATA_ONLY }
    const keep = ({ metadata }: KubeObject) => metadata?.annotations?.[ANNOTATION]
    const { kept } = await this.#api.list(call, this.#stop.signal, keep)
    return kept.filter((key) => key !== undefined)
  }

  close(): Promise<void> {
    this.#stop.abort(new DrainableError('CONFLICT', 'the store was closed'))
    return Promise.resolve()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(key) ?? Promise.resolve()
    const due = this.#clock.now() + LIMIT
    const begin = (): Promise<T> => {
      if (this.#clock.now() < due) return work()
      const words = `${this.#what('reach', key)}: the calls before it had no answer for 10 s`
      throw new DrainableError('CALL_TIMEOUT', words)
    }
    const turn = before.then(begin, begin)
    const settled = turn.catch(() => undefined)
    this.#turns.set(key, settled)
    try {
      return await turn
    } finally {
      if (this.#turns.get(key) === settled) this.#turns.delete(key)
    }
  }

  #note(key: string, known: Known): void {
    if (known.version === undefined && known.unanswered.length === 0) this.#known.delete(key)
    else this.#known.set(key, known)
  }

  async #write(key: string, text: string): Promise<void> {
    const known = this.#known.get(key) ?? (await this.#look(key))
    if (await this.#put(key, text, known)) return
    // Somebody else was faster, or this is what our own lost writing left there.
    const found = await this.#read(key)
    const isOurs = found !== undefined && [...known.unanswered, text].includes(found.text)
    const wasDeleted = found === undefined && known.version === undefined
    if (!isOurs && !wasDeleted) throw this.#conflict(key, found === undefined)
    if (!(await this.#put(key, text, { ...known, version: found?.version })))
      throw this.#conflict(key, false)
  }

  /** @returns whether it is written; `false` if it is not as it was known */
  async #put(key: string, text: string, { version, unanswered }: Known): Promise<boolean> {
    const name = nameOf(key)
    const metadata = {
      name,
      labels: { [LABEL]: 'true' },
      annotations: { [ANNOTATION]: key },
      ...(version === undefined ? {} : { resourceVersion: version }),
    }
    const call = {
      what: this.#what('write', key),
      method: version === undefined ? ('POST' as const) : ('PUT' as const),
      path: version === undefined ? this.#path : `${this.#path}/${name}`,
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { [FIELD]: text } },
    }
    // Whatever becomes of the call, this text may be there from now on.
    this.#note(key, { version, unanswered: [...unanswered, text].slice(-MOST_UNANSWERED) })
    const conflicts = version === undefined ? [409] : [404, 409]
    const { status, object } = await this.#api.call(call, this.#stop.signal, conflicts)
    const isWritten = !conflicts.includes(status)
    this.#note(
      key,
      isWritten
        ? { version: object.metadata?.resourceVersion, unanswered: [] }
        : { version, unanswered },
    )
    return isWritten
  }

  async #remove(key: string): Promise<void> {
    const known = this.#known.get(key) ?? (await this.#look(key))
    if (await this.#erase(key, known.version)) return
    const found = await this.#read(key)
    if (found !== undefined && !known.unanswered.includes(found.text))
      throw this.#conflict(key, false)
    if (found !== undefined && !(await this.#erase(key, found.version)))
      throw this.#conflict(key, false)
    this.#known.delete(key)
  }

  /** @returns whether it is not there any more; `false` if it has another version */
  async #erase(key: string, version: string | undefined): Promise<boolean> {
    const preconditions = version === undefined ? {} : { resourceVersion: version }
    const call = {
      what: this.#what('delete', key),
      method: 'DELETE' as const,
      path: `${this.#path}/${nameOf(key)}`,
      body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions },
    }
    const { status } = await this.#api.call(call, this.#stop.signal, [404, 409])
    if (status === 409) return false
    this.#known.delete(key)
    return true
  }

  async #look(key: string): Promise<Known> {
    return { version: (await this.#read(key))?.version, unanswered: [] }
  }

  async #read(
    key: string,
  ): Promise<{ readonly version: string | undefined; readonly text: string } | undefined> {
    const what = this.#what('read', key)
    const call = { what, path: `${this.#path}/${nameOf(key)}` }
    const { status, object } = await this.#api.call(call, this.#stop.signal, [404])
    if (status === 404) return undefined
    const { metadata, data } = object
    const text = (data as Readonly<Record<string, unknown>> | undefined)?.[FIELD]
    const owner = metadata?.annotations?.[ANNOTATION]
    if (typeof text === 'string' && owner === key)
      return { version: metadata?.resourceVersion, text }
    const words = `${what}: ConfigMap ${nameOf(key)} is no ticket of that key, use a namespace that nothing else writes to`
    throw new DrainableError('MALFORMED_REPLY', words)
  }

  #what(verb: string, key: string): string {
    return `${verb} ticket '${quote(key)}' in ${this.#namespace}`
  }

  #conflict(key: string, isGone: boolean): DrainableError {
    // What is known of it is out of date: the next call reads it anew.
    this.#known.delete(key)
    const how = isGone ? 'was deleted' : 'was written'
    const words = `ticket '${quote(key)}' in ${this.#namespace} ${how} by another process meanwhile, read it again`
    return new DrainableError('CONFLICT', words)
  }
}

/** Of a key: what of it a name can have, for people, and a hash of all of it. */
function nameOf(key: string): string {
  const readable = key
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 60)
  const hash = createHash('sha256').update(key).digest('hex').slice(0, 20)
  return `drainable-${readable.replaceAll(/^-+|-+$/g, '')}-${hash}`.replace('--', '-')
}

/** A damaged text is no ticket: whoever reads it says so. */
function parseTicket(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
