import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import * as z from 'zod'
import { systemClock } from '../../../provider/clock.js'
import { DrainableError } from '../../../provider/error.js'
import { parseOptions } from '../../../provider/options.js'
import { AssignmentProblem, type Assignment } from '../codec/assignment.js'
import { adoptInBackground } from './background-adoption.js'
import type { Version } from '../../../kit/version.js'
import { isCount, isObject, type JsonObject } from '../../../kit/json.js'
import { CLA_TYPE, JsonAssignment } from '../codec/json.js'
import { initialOption, readInitial, type HeldMembers, type InitialEndpoints } from './initial.js'
import { ReceiptBook, type NodeReceipt } from './receipts.js'
import { Pollers } from './rest-pollers.js'
import { ServedSets } from './served-sets.js'
import { checkSets, parseSets } from '../codec/sets.js'
import type { EndpointSink, Published, SinkHost } from './sink.js'

/** Options of {@link restEndpoints}. */
export interface RestEndpointsOptions {
  /** Port to listen on; 0 takes a free one. */
  readonly port: number
  /** Address to listen on. @default '127.0.0.1' */
  readonly host?: string | undefined
  /**
   * The full endpoint sets, `ClusterLoadAssignment`s in EDS JSON; or `adopt` them from the proxies'
   * admin API before anything is served. A fresh fleet has nothing to adopt:
   * `{ adopt: true, else: sets, held: () => heldMembers(store) }` starts both. @default 'adopt'
   */
  readonly initial?: InitialEndpoints | undefined
}

/** A sink that listens, and whose sets can also be changed by hand. */
export interface ServedEndpoints extends EndpointSink {
  /** Where it listens; undefined before {@link EndpointSink.open} has resolved. */
  readonly address: { readonly host: string; readonly port: number } | undefined
  /** Replaces whole sets, whoever drains in them; sets that are not named stay. */
  set(sets: readonly unknown[]): Promise<void>
}

const schema = z.strictObject({
  port: z.number().int().min(0).max(65_535),
  host: z.string().min(1).exactOptional(),
  initial: initialOption.exactOptional(),
})
/** Envoy sends its whole node with each poll: 77 KB. */
const MAX_REQUEST = 4 * 1024 * 1024
/** More sets than any proxy asks for at once. */
const MAX_NAMES = 10_000
/** A whole request must be in by then. */
const REQUEST_TIME = 30_000
const MAX_CONNECTIONS = 10_000
/** Envoy keeps its connection between two polls. */
const KEEP_ALIVE = 75_000

/**
 * A REST xDS server for endpoint sets: the fallback where gRPC is not wanted. Envoy polls it, and
 * never says that it refused a set: give `admin` to see that too.
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
  readonly #book = new ReceiptBook(() => systemClock.now())
  readonly #pollers = new Pollers(this.#book, () => systemClock.now())
  readonly #closing = new AbortController()
  #server: Server | undefined
  #opening: Promise<void> | undefined

  constructor(host: string, port: number, initial: ParsedInitial) {
    this.#host = host
    this.#port = port
    this.instance = `rest:${host}:${port}`
    const { sets, otherwise, held } = initial
    this.#sets = new ServedSets({
      instance: this.instance,
      convert: toSets,
      otherwise: otherwise && (() => Promise.resolve(otherwise)),
      held,
    })
    for (const set of sets ?? []) this.#sets.put(set)
  }

  get address(): { host: string; port: number } | undefined {
    const at = this.#server?.address()
    return typeof at === 'object' && at !== null ? { host: at.address, port: at.port } : undefined
  }

  open(host: SinkHost): Promise<void> {
    this.#opening ??= this.#listen().then(() => {
      void adoptInBackground(this.#sets, host, this.#closing.signal)
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

  receipts(cluster: string): readonly NodeReceipt[] {
    return this.#book.of(cluster)
  }

  nodes(): ReadonlySet<string> {
    return this.#book.nodes()
  }

  streams(node: string, each?: (set: string) => number): number {
    return this.#book.streams(node, each)
  }

  dropOne(node: string): boolean {
    return this.#book.dropOne(node)
  }

  isConnected(node: string): boolean {
    return this.#pollers.isConnected(node)
  }

  drop(node: string): void {
    this.#pollers.drop(node)
  }

  listen(fn: () => void): () => void {
    return this.#book.listen(fn)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    const server = this.#server
    this.#server = undefined
    if (server === undefined) return
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }

  #listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      const server = createServer((request, response) => {
        // Whatever a client sends, it ends its own request and nothing else.
        this.#answer(request, response).catch(() => {
          if (response.headersSent) response.destroy()
          else response.writeHead(400).end()
        })
      })
      server.requestTimeout = REQUEST_TIME
      server.keepAliveTimeout = KEEP_ALIVE
      server.headersTimeout = REQUEST_TIME
      server.maxConnections = MAX_CONNECTIONS
      server.once('error', (cause) =>
        reject(
          new DrainableError(
            'INVALID_OPTIONS',
            `restEndpoints(): cannot listen on ${this.#host}:${this.#port}: ${cause.message}`,
            { cause },
          ),
        ),
      )
      server.listen(this.#port, this.#host, () => {
        server.on('error', () => undefined) // one connection that could not be taken
        this.#server = server
        resolve()
      })
    })
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '').split('?')[0]
    if (request.method !== 'POST' || path !== '/v3/discovery:endpoints') {
      response.writeHead(404).end()
      return
    }
    const body = await readJson(request)
    if (body === undefined) {
      response.writeHead(400).end()
      return
    }
    const names = namesIn(body['resource_names'])
    const { node, version_info: said } = body
    if (names === undefined) {
      response.writeHead(400).end()
      return
    }
    const found = names.flatMap((name) => this.#sets.get(name) ?? [])
    const told = typeof said === 'string' ? said : ''
    const poll = { node: idOf(node), version: nodeVersion(node), told, socket: request.socket }
    const noted = this.#pollers.note(poll, found)
    if (typeof noted === 'string') {
      response.writeHead(noted === 'full' ? 503 : 304).end()
      return
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        version_info: noted.version,
        type_url: CLA_TYPE,
        resources: found.map((published) => published.set.toJson()),
      }),
    )
  }
}

/** Each name once; undefined where there is anything but names. */
function namesIn(value: unknown): string[] | undefined {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value) || !value.every((name) => typeof name === 'string')) return undefined
  const names = [...new Set(value)]
  return names.length > MAX_NAMES ? undefined : names
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

async function readJson(request: IncomingMessage): Promise<JsonObject | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > MAX_REQUEST) return undefined
      chunks.push(chunk)
    }
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function toSets(resources: readonly JsonObject[]): Promise<readonly JsonAssignment[]> {
  try {
    const sets = resources.map((resource, i) => JsonAssignment.parse(resource, `[${i}]`))
    checkSets(sets)
    return Promise.resolve(sets)
  } catch (problem) {
    if (!(problem instanceof AssignmentProblem)) throw problem
    throw new DrainableError('REJECTED', `adopted from the proxies: ${problem.toString()}`)
  }
}
