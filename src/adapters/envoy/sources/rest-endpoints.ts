import type { Socket } from 'node:net'
import * as z from 'zod/mini'
import { systemClock } from '../../../provider/clock.js'
import { DrainableError } from '../../../provider/error.js'
import { nonEmpty, whole } from '../../../provider/option-schemas.js'
import { parseOptions } from '../../../provider/options.js'
import type { Assignment } from '../codec/assignment.js'
import type { Version } from '../../../kit/version.js'
import { isCount, isObject, type JsonObject } from '../../../kit/json.js'
import { CLA_TYPE, JsonAssignment } from '../codec/json.js'
import { initialOption, readInitial, type HeldMembers, type InitialEndpoints } from './initial.js'
import { MAX_POLLERS, Pollers } from './rest-pollers.js'
import { listenRest, type Answer, type RestServer } from './rest-server.js'
import { listeningAt, ServedSets } from './served-sets.js'
import { parseSets } from '../codec/sets.js'
import type { EndpointSink, Published, SinkHost } from './sink.js'

/** Options of {@link restEndpoints}. */
export interface RestEndpointsOptions {
  /** Port to listen on; 0 takes a free one. */
  readonly port: number
  /** Address to listen on. @default '127.0.0.1' */
  readonly host?: string | undefined
  /**
   * The full endpoint sets, `ClusterLoadAssignment`s in EDS JSON; or `adopt`: take them from the proxies' admin API
   * before anything is served. A new fleet has nothing to adopt: `{ adopt: true, else: sets, held: () =>
   * heldMembers(store) }` works for both. @default 'adopt'
   */
  readonly initial?: InitialEndpoints | undefined
}

/** A sink that listens on a port and also takes whole sets by {@link ServedEndpoints.set}. */
export interface ServedEndpoints extends EndpointSink {
  /** The address that it listens on; undefined before {@link EndpointSink.open} has resolved. */
  readonly address: { readonly host: string; readonly port: number } | undefined
  /** Replaces whole sets, also during drains; sets that are not named stay. */
  set(sets: readonly unknown[]): Promise<void>
}

const schema = z.strictObject({
  port: whole(0, 65_535),
  host: z.exactOptional(nonEmpty()),
  initial: z.exactOptional(initialOption),
})
/** More sets than any proxy asks for at once. */
const MAX_NAMES = 10_000
const MAX_ID = 4_096

/**
 * Makes a REST xDS server for endpoint sets: the alternative if you do not want gRPC. Envoy polls it, and never
 * reports that it refused a set: give `admin` to see that too.
 *
 * @throws `INVALID_OPTIONS`
 */
export function restEndpoints(options: RestEndpointsOptions): ServedEndpoints {
  const { port, host, initial } = parseOptions(schema, options, 'restEndpoints()')
  const { sets, otherwise, held } = readInitial(initial)
  const parse = (given: readonly unknown[], field: string): JsonAssignment[] =>
    parseSets(given, `restEndpoints() ${field}`, 'INVALID_OPTIONS')
  return new RestEndpoints(host ?? '127.0.0.1', port, {
    sets: sets && parse(sets, 'initial'),
    otherwise: otherwise && parse(otherwise, 'initial.else'),
    held,
  })
}

/** The first sets, parsed. */
interface ParsedInitial {
  readonly sets: readonly JsonAssignment[] | undefined
  readonly otherwise: readonly JsonAssignment[] | undefined
  readonly held: HeldMembers
}

class RestEndpoints implements ServedEndpoints {
  readonly kind = 'rest'
  readonly instance: string
  readonly lateBound = 0
  readonly #host: string
  readonly #port: number
  readonly #sets: ServedSets<JsonAssignment>
  readonly subscribers = new Pollers(() => systemClock.now())
  readonly #closing = new AbortController()
  #server: RestServer | undefined
  #opening: Promise<void> | undefined

  constructor(host: string, port: number, initial: ParsedInitial) {
    this.#host = host
    this.#port = port
    this.instance = listeningAt('rest', host, port)
    const { sets, otherwise, held } = initial
    this.#sets = new ServedSets({
      instance: this.instance,
      convert: (set) => set,
      otherwise: otherwise && (() => Promise.resolve(otherwise)),
      held,
    })
    this.#sets.begin(sets ?? [])
  }

  get address(): { host: string; port: number } | undefined {
    return this.#server?.address()
  }

  open(host: SinkHost): Promise<void> {
    this.#opening ??= this.#listen().then(() => {
      void this.#sets.adoptInBackground(host, this.#closing.signal)
    })
    return this.#opening
  }

  async load(host: SinkHost, signal: AbortSignal): Promise<ReadonlyMap<string, Published>> {
    await this.open(host)
    await this.#sets.adopt(host, signal)
    return this.#sets.all()
  }

  async publish(set: Assignment, signal?: AbortSignal, expected?: Assignment): Promise<Published> {
    signal?.throwIfAborted()
    if (set instanceof JsonAssignment)
      return await Promise.resolve(this.#sets.publish(set, expected))
    throw new DrainableError('INVALID_OPTIONS', 'restEndpoints takes JSON sets only')
  }

  set(sets: readonly unknown[]): Promise<void> {
    for (const set of parseSets(sets, 'restEndpoints set()', 'INVALID_OPTIONS')) this.#sets.put(set)
    return Promise.resolve()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    const server = this.#server
    this.#server = undefined
    await server?.close()
  }

  async #listen(): Promise<void> {
    const answer = (body: JsonObject, socket: Socket): Answer => this.#answer(body, socket)
    this.#server = await listenRest(answer, { host: this.#host, port: this.#port })
  }

  #answer(body: JsonObject, socket: Socket): Answer {
    const names = namesIn(body['resource_names'])
    if (typeof names === 'string') return { status: 400, why: names }
    const { node, version_info: said } = body
    const found = names.flatMap((name) => this.#sets.get(name) ?? [])
    const told = typeof said === 'string' ? said : ''
    const id = idOf(node)
    if (id.length > MAX_ID)
      return { status: 400, why: `node.id is longer than ${MAX_ID} characters` }
    const noted = this.subscribers.note(
      { node: id, version: nodeVersion(node), told, socket },
      found,
    )
    if (noted === 'full') return { status: 503, why: `more than ${MAX_POLLERS} proxies` }
    if (noted === 'held') return { status: 304 }
    return {
      status: 200,
      body: {
        version_info: noted.version,
        type_url: CLA_TYPE,
        resources: found.map((published) => published.set.toJson()),
      },
    }
  }
}

/** Each name once; or what is wrong, in words. */
function namesIn(value: unknown): string[] | string {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value) || !value.every((name) => typeof name === 'string')) {
    return 'resource_names is no list of names'
  }
  const names = [...new Set(value)]
  return names.length > MAX_NAMES ? `more than ${MAX_NAMES} resource_names` : names
}

function idOf(node: unknown): string {
  return isObject(node) && typeof node['id'] === 'string' ? node['id'] : ''
}

/** `user_agent_build_version` of a node in JSON. */
function nodeVersion(node: unknown): Version | undefined {
  const build = isObject(node) ? node['user_agent_build_version'] : undefined
  const version = isObject(build) ? build['version'] : undefined
  if (!isObject(version)) return undefined
  const [major, minor, patch] = ['major_number', 'minor_number', 'patch'].map((key) => {
    const number = version[key] ?? 0
    return isCount(number) ? number : undefined
  })
  if (major === undefined || minor === undefined || patch === undefined) return undefined
  return { major, minor, patch, text: `${major}.${minor}.${patch}` }
}
