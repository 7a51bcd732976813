import { abortable } from '../../../provider/abort.js'
import { pause, systemClock } from '../../../provider/clock.js'
import type { MemberRef } from '../../../provider/contract.js'
import type { ErrorCode } from '../../../provider/error.js'
import { canonicalMember } from '../codec/address.js'
import type { Assignment } from '../codec/assignment.js'
import type { EdsStatus } from '../codec/status.js'
import { agreed, nothingToAdopt } from './adoption.js'
import { readHeld, type HeldMembers, type Initial } from './initial.js'
import { Publications, type Publication } from './publications.js'
import {
  Superseded,
  type EndpointSink,
  type LoadReports,
  type Published,
  type SinkHost,
  type Subscribers,
} from './sink.js'

/** An assignment whose edits are of its own kind. */
type Edited<A> = { withStatus(edits: ReadonlyMap<string, EdsStatus>): A } & Assignment

/** A failed adoption is tried again after this long, in milliseconds. */
const AGAIN = 1_000

/** A sink that listens on a port and also takes whole sets by {@link ServedEndpoints.set}. */
export interface ServedEndpoints extends EndpointSink {
  /** The address that it listens on; undefined before {@link EndpointSink.open} has resolved. */
  readonly address: { readonly host: string; readonly port: number } | undefined
  /** Replaces whole sets, also during drains; sets that are not named stay. */
  set(sets: readonly unknown[]): Promise<void>
}

/** Where a set comes from, for the error if it can't be served. */
export interface Origin {
  readonly subject: string
  readonly code: ErrorCode
  /** Its path there. */
  readonly at: string
}

/** A port that is listened on. */
export interface Listening {
  readonly address: { readonly host: string; readonly port: number }
  close(): Promise<void> | void
}

/** What is served, and how. */
export interface ServedSinkOptions<A> {
  readonly kind: 'grpc' | 'rest'
  readonly host: string
  readonly port: number
  readonly initial: Initial | undefined
  readonly subscribers: Subscribers
  readonly loads?: LoadReports & { close(): void }
  /** Sets that a caller gives. @throws `INVALID_OPTIONS` */
  readonly parse: (given: readonly unknown[], subject: string) => readonly Assignment[]
  /** A set as it is served. */
  readonly convert: (set: Assignment, origin: Origin) => A | Promise<A>
  readonly listen: () => Promise<Listening>
}

/**
 * A sink that serves its sets itself: given at the start, or adopted from the proxies before
 * anything is served, so that nothing is ever emptied by a management server that just came up.
 */
export class ServedSink<A extends Edited<A>> implements ServedEndpoints {
  readonly kind: 'grpc' | 'rest'
  readonly instance: string
  readonly lateBound = 0
  readonly subscribers: Subscribers
  declare readonly loads?: LoadReports
  readonly #options: ServedSinkOptions<A>
  /** The factory, in errors. */
  readonly #factory: string
  readonly #sets = new Publications<A>()
  readonly #listeners = new Set<(cluster: string) => void>()
  /** Sets that the caller gave while others were still to come: nothing that is adopted replaces them. */
  readonly #given = new Set<string>()
  /** Served from the start on; undefined: adopt first. */
  readonly #first: readonly Assignment[] | undefined
  /** Served where nothing can be adopted. */
  readonly #otherwise: readonly Assignment[] = []
  readonly #held: HeldMembers = []
  readonly #closing = new AbortController()
  #opening: Promise<void> | undefined
  #listening: Listening | undefined
  #loading: Promise<void> | undefined
  /** The sets that were given last are being taken over. */
  #setting: Promise<void> = Promise.resolve()
  #loaded = false

  /** @throws `INVALID_OPTIONS` */
  constructor(options: ServedSinkOptions<A>) {
    this.#options = options
    const { kind, host, port, initial = 'adopt', parse, subscribers, loads } = options
    this.kind = kind
    this.instance = listeningAt(kind, host, port)
    this.subscribers = subscribers
    if (loads !== undefined) this.loads = loads
    this.#factory = `${kind}Endpoints`
    if (initial === 'adopt') return
    if ('adopt' in initial) {
      this.#otherwise = initial.else === undefined ? [] : parse(initial.else, this.#else)
      this.#held = initial.held ?? []
    } else this.#first = parse(initial, `${this.#factory}() initial`)
  }

  get address(): Listening['address'] | undefined {
    return this.#listening?.address
  }

  get(cluster: string): Publication<A> | undefined {
    return this.#sets.get(cluster)
  }

  names(): readonly string[] {
    return [...this.#sets.all().keys()]
  }

  /** Calls `fn` with the name of each set that is published. */
  listen(fn: (cluster: string) => void): void {
    this.#listeners.add(fn)
  }

  open(host: SinkHost): Promise<void> {
    this.#opening ??= this.#open(host)
    return this.#opening
  }

  async load(host: SinkHost, signal: AbortSignal): Promise<ReadonlyMap<string, Published>> {
    await this.open(host)
    await this.#adopt(host, signal)
    return this.#sets.all()
  }

  async publish(set: Assignment, signal?: AbortSignal, expected?: Assignment): Promise<Published> {
    signal?.throwIfAborted()
    const origin = { subject: `${this.#factory} publish`, code: 'INVALID_OPTIONS', at: '' } as const
    const own = await this.#options.convert(set, origin)
    if (expected !== undefined && this.get(set.cluster)?.set !== expected)
      throw new Superseded(set.cluster)
    return this.#put(own)
  }

  /** In the order in which they are given. The others are still adopted, where none were there at the start. */
  async set(given: readonly unknown[]): Promise<void> {
    const subject = `${this.#factory} set()`
    const sets = this.#options.parse(given, subject)
    const setting = this.#setting.then(async () => {
      for (const set of await this.#converted(sets, subject)) {
        if (!this.#loaded) this.#given.add(set.cluster)
        this.#put(set)
      }
    })
    this.#setting = setting.catch(() => undefined)
    await setting
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#options.loads?.close()
    const listening = this.#listening
    this.#listening = undefined
    await listening?.close()
  }

  async #open(host: SinkHost): Promise<void> {
    if (this.#first !== undefined) {
      const first = await this.#converted(this.#first, `${this.#factory}() initial`)
      for (const set of first) if (!this.#given.has(set.cluster)) this.#put(set)
      this.#loaded = true
    }
    this.#listening = await this.#options.listen()
    if (this.#closing.signal.aborted) await this.close()
    void this.#adoptInBackground(host, this.#closing.signal)
  }

  /** Proxies that come up wait for their sets, whoever drains or not. */
  async #adoptInBackground(host: SinkHost, signal: AbortSignal): Promise<void> {
    while (!this.#loaded && !signal.aborted) {
      try {
        await this.#adopt(host, signal)
      } catch {
        // Who needs the sets gets the error from load(); here it is only tried again.
        await pause(systemClock, AGAIN, signal).catch(() => undefined)
      }
    }
  }

  /** Takes over the sets of the proxies, once; a failed attempt is repeated by the next call. */
  async #adopt(host: SinkHost, signal: AbortSignal): Promise<void> {
    if (this.#loaded) return
    // Callers share it, so it heeds none of their signals; the host ends it at its close.
    if (this.#loading === undefined) {
      const whole = new AbortController().signal
      this.#loading = this.#takeOver(host, whole).finally(() => (this.#loading = undefined))
      this.#loading.catch(() => undefined)
    }
    await abortable(this.#loading, signal)
  }

  async #takeOver(host: SinkHost, signal: AbortSignal): Promise<void> {
    const refs = await readHeld(this.#held, this.instance)
    const own = await this.#converted(this.#otherwise, this.#else)
    const ownNames = new Set([...own.map(({ cluster }) => cluster), ...this.#given])
    const proxies = await host.held(signal)
    const { sets: found, draining } = agreed(proxies, ownNames)
    // Without sets of its own it has nothing to serve.
    if (found.length === 0 && ownNames.size === 0) throw nothingToAdopt(proxies)
    const adopted = await this.#converted(found, 'adopted from the proxies', 'REJECTED')
    const names = new Set(adopted.map(({ cluster }) => cluster))
    const sets = [...adopted, ...own.filter(({ cluster }) => !names.has(cluster))]
    // All that is given by now: also what came while the proxies were asked.
    const open = sets.filter(({ cluster }) => !this.#given.has(cluster))
    const services = new Map(proxies.flatMap((proxy) => [...proxy.services]))
    const held = placesOf(refs, sets, services)
    for (const set of open) this.#put(withHeld(set, held, draining))
    this.#loaded = true
  }

  async #converted(
    sets: readonly Assignment[],
    subject: string,
    code: ErrorCode = 'INVALID_OPTIONS',
  ): Promise<A[]> {
    const converted: A[] = []
    for (const [i, set] of sets.entries())
      converted.push(await this.#options.convert(set, { subject, code, at: `[${i}]` }))
    return converted
  }

  #put(set: A): Published {
    const published = this.#sets.put(set)
    for (const fn of this.#listeners) fn(set.cluster)
    return published
  }

  get #else(): string {
    return `${this.#factory}() initial.else`
  }
}

/**
 * The members that are held, by set. A ref names a cluster, and which set feeds it may not be known, where no proxy
 * told: then it stands for every set that has the member. No held member is opened.
 */
function placesOf(
  refs: readonly MemberRef[],
  sets: readonly Assignment[],
  services: ReadonlyMap<string, string>,
): ReadonlyMap<string, ReadonlySet<string>> {
  const members = new Map(
    sets.map(({ cluster, endpoints }) => [cluster, new Set(endpoints.map((one) => one.member))]),
  )
  const held = new Map(sets.map(({ cluster }) => [cluster, new Set<string>()]))
  for (const { pool, member: name } of refs) {
    const member = canonicalMember(name)
    const service = services.get(pool)
    const isKnown = service !== undefined || members.get(pool)?.has(member) === true
    for (const [cluster, there] of members) {
      const isMeant = isKnown ? cluster === (service ?? pool) : there.has(member)
      if (isMeant) held.get(cluster)?.add(member)
    }
  }
  return held
}

/** The set with every held member DRAINING in it: nothing may open them between two processes of ours. */
function withHeld<A extends Edited<A>>(
  set: A,
  held: ReadonlyMap<string, ReadonlySet<string>>,
  draining: ReadonlyMap<string, ReadonlySet<string>>,
): A {
  const { cluster } = set
  const members = new Set([...(held.get(cluster) ?? []), ...(draining.get(cluster) ?? [])])
  const edits = set.endpoints.flatMap(({ member, status }) =>
    member !== undefined && members.has(member) && status !== 'DRAINING'
      ? [[member, 'DRAINING' satisfies EdsStatus] as const]
      : [],
  )
  return edits.length === 0 ? set : set.withStatus(new Map(edits))
}

let ephemeral = 0

/**
 * The name of a server for proxies. With port 0 the system chooses a port for each: they are told apart by their order
 * in this process, because drains of one name share their floor.
 */
function listeningAt(kind: 'grpc' | 'rest', host: string, port: number): string {
  if (port !== 0) return `${kind}:${host}:${port}`
  ephemeral += 1
  return `${kind}:${host}:0#${ephemeral}`
}
