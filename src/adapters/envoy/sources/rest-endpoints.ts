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
import { initialOption, type InitialEndpoints } from './initial.js'
import { MAX_POLLERS, Pollers } from './rest-pollers.js'
import { listenRest, type Answer } from './rest-server.js'
import { ServedSink, type ServedEndpoints } from './served-sink.js'
import { parseSets } from '../codec/sets.js'

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

const schema = z.strictObject({
  port: whole(0, 65_535),
  host: z._default(nonEmpty(), '127.0.0.1'),
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
  const { host, port, initial } = parseOptions(schema, options, 'restEndpoints()')
  const pollers = new Pollers(() => systemClock.now())
  const sink: ServedSink<JsonAssignment> = new ServedSink({
    kind: 'rest',
    host,
    port,
    initial,
    subscribers: pollers,
    parse: (given, subject) => parseSets(given, subject, 'INVALID_OPTIONS'),
    convert: jsonOnly,
    listen: () => listenRest((body, socket) => answer(body, socket, sink, pollers), { host, port }),
  })
  return sink
}

function jsonOnly(set: Assignment): JsonAssignment {
  if (set instanceof JsonAssignment) return set
  throw new DrainableError('INVALID_OPTIONS', 'restEndpoints takes JSON sets only')
}

/** What a poll is answered. */
function answer(
  body: JsonObject,
  socket: Socket,
  sink: ServedSink<JsonAssignment>,
  pollers: Pollers,
): Answer {
  const names = namesIn(body['resource_names'])
  if (typeof names === 'string') return { status: 400, why: names }
  const { node, version_info: said } = body
  const found = names.flatMap((name) => sink.get(name) ?? [])
  const told = typeof said === 'string' ? said : ''
  const id = idOf(node)
  if (id.length > MAX_ID) return { status: 400, why: `node.id is longer than ${MAX_ID} characters` }
  const noted = pollers.note({ node: id, version: nodeVersion(node), told, socket }, found)
  if (noted === 'full') return { status: 503, why: `more than ${MAX_POLLERS} proxies` }
  if (noted === 'held') return { status: 304 }
  const resources = found.map((published) => published.set.toJson())
  return { status: 200, body: { version_info: noted.version, type_url: CLA_TYPE, resources } }
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
