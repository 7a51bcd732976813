/**
 * The few fields of xDS and LRS that the fake writes and reads, by their numbers: it is the other
 * side of the wire and shares no code with the server it talks to.
 */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { STATUSES, type ReceivedEndpoint, type ReceivedSet } from './assignment.js'
import type { Cluster } from './cluster.js'
import type { Settings } from './options.js'

export const CLA = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment'

const LEN = WireType.LengthDelimited
const INT = WireType.Varint

/** A response of either protocol. */
export interface Response {
  readonly version: string
  readonly nonce: string
  readonly resources: readonly { readonly version: string; readonly set: ReceivedSet }[]
}

interface Field {
  readonly bytes: Uint8Array
  readonly number: number
}

function fields(message: Uint8Array): Map<number, Field[]> {
  const found = new Map<number, Field[]>()
  const reader = new BinaryReader(message)
  while (reader.pos < reader.len) {
    const [no, type] = reader.tag()
    let field: Field = { bytes: new Uint8Array(), number: 0 }
    if (type === WireType.LengthDelimited) field = { bytes: reader.bytes(), number: 0 }
    else if (type === WireType.Varint)
      field = { bytes: new Uint8Array(), number: Number(reader.uint64()) }
    else reader.skip(type, no)
    found.set(no, [...(found.get(no) ?? []), field])
  }
  return found
}

class Message {
  readonly #fields: Map<number, Field[]>
  constructor(bytes: Uint8Array) {
    this.#fields = fields(bytes)
  }
  all(no: number): Message[] {
    return (this.#fields.get(no) ?? []).map(({ bytes }) => new Message(bytes))
  }
  one(no: number): Message {
    return this.all(no).at(-1) ?? new Message(new Uint8Array())
  }
  has(no: number): boolean {
    return this.#fields.has(no)
  }
  text(no: number): string {
    return new TextDecoder().decode(this.#fields.get(no)?.at(-1)?.bytes)
  }
  number(no: number): number {
    return this.#fields.get(no)?.at(-1)?.number ?? 0
  }
}

export function readSotw(bytes: Uint8Array): Response {
  const message = new Message(bytes)
  const version = message.text(1)
  const resources = message.all(2).map((any) => ({ version, set: readSet(any.one(2)) }))
  return { version, nonce: message.text(5), resources }
}

export function readDelta(bytes: Uint8Array): Response {
  const message = new Message(bytes)
  return {
    version: message.text(1),
    nonce: message.text(5),
    resources: message
      .all(2)
      .map((resource) => ({ version: resource.text(1), set: readSet(resource.one(2).one(2)) })),
  }
}

function readSet(cla: Message): ReceivedSet {
  return {
    service: cla.text(1),
    endpoints: cla.all(2).flatMap((group) =>
      group.all(2).map((lb): ReceivedEndpoint => {
        const endpoint = lb.one(1)
        const address = endpoint.one(1)
        const socket = address.one(1)
        const locality = group.one(1)
        return {
          address: socket.text(2) || address.one(2).text(1),
          port: socket.number(3),
          hostname: endpoint.text(3),
          status: STATUSES[lb.number(2)] ?? 'UNKNOWN',
          weight: lb.has(4) ? lb.one(4).number(1) : undefined,
          priority: group.number(5),
          labels: {},
          locality: { region: locality.text(1), zone: locality.text(2), subZone: locality.text(3) },
        }
      }),
    ),
  }
}

/** Seconds and nanoseconds between two load reports, in milliseconds. */
export function readInterval(bytes: Uint8Array): number {
  const duration = new Message(bytes).one(2)
  return duration.number(1) * 1_000 + duration.number(2) / 1e6
}

export interface Answer {
  readonly nonce: string
  readonly error?: string | undefined
}

export function writeSotw(
  settings: Settings,
  names: readonly string[],
  version: string,
  answer?: Answer,
): Uint8Array {
  const writer = new BinaryWriter()
  if (version !== '') text(writer, 1, version)
  if (answer === undefined) bytes(writer, 2, node(settings))
  for (const name of names) text(writer, 3, name)
  text(writer, 4, CLA)
  if (answer !== undefined) text(writer, 5, answer.nonce)
  if (answer?.error !== undefined) bytes(writer, 6, status(answer.error))
  return writer.finish()
}

export function writeDelta(
  settings: Settings,
  subscribe: readonly string[],
  versions: ReadonlyMap<string, string>,
  answer?: Answer,
): Uint8Array {
  const writer = new BinaryWriter()
  if (answer === undefined) bytes(writer, 1, node(settings))
  text(writer, 2, CLA)
  for (const name of subscribe) text(writer, 3, name)
  for (const [name, version] of versions) {
    bytes(
      writer,
      5,
      new BinaryWriter().tag(1, LEN).string(name).tag(2, LEN).string(version).finish(),
    )
  }
  if (answer !== undefined) text(writer, 6, answer.nonce)
  if (answer?.error !== undefined) bytes(writer, 7, status(answer.error))
  return writer.finish()
}

/** A load report: a host without work is left out. */
export function writeLoads(
  settings: Settings,
  clusters: readonly Cluster[],
  issued: ReadonlyMap<string, number>,
  covered: number,
): Uint8Array {
  const writer = new BinaryWriter()
  bytes(writer, 1, node(settings))
  for (const cluster of clusters) {
    const stats = new BinaryWriter().tag(1, LEN).string(cluster.name)
    const locality = new BinaryWriter()
    for (const host of cluster.hosts.values()) {
      const begun = issued.get(`${cluster.name} ${host.name}`) ?? 0
      if (host.active === 0 && begun === 0) continue
      const { address, port } = host.endpoint
      const socket = new BinaryWriter()
        .tag(2, LEN)
        .string(address)
        .tag(3, INT)
        .uint32(port)
        .finish()
      const endpoint = new BinaryWriter()
      bytes(endpoint, 1, new BinaryWriter().tag(1, LEN).bytes(socket).finish())
      endpoint.tag(3, INT).uint32(host.active).tag(7, INT).uint32(begun)
      bytes(locality, 7, endpoint.finish())
    }
    bytes(stats, 2, locality.finish())
    bytes(stats, 4, duration(covered))
    text(stats, 6, cluster.service)
    bytes(writer, 2, stats.finish())
  }
  return writer.finish()
}

export function writeLoadsBegin(settings: Settings): Uint8Array {
  const writer = new BinaryWriter()
  bytes(writer, 1, node(settings))
  return writer.finish()
}

function node({ node: id, version: [major, minor, patch] }: Settings): Uint8Array {
  const semantic = new BinaryWriter()
    .tag(1, INT)
    .uint32(major)
    .tag(2, INT)
    .uint32(minor)
    .tag(3, INT)
    .uint32(patch)
  const build = new BinaryWriter().tag(1, LEN).bytes(semantic.finish()).finish()
  const writer = new BinaryWriter().tag(1, LEN).string(id)
  text(writer, 6, 'envoy')
  bytes(writer, 8, build)
  text(writer, 10, 'envoy.lrs.supports_send_all_clusters')
  return writer.finish()
}

function status(message: string): Uint8Array {
  return new BinaryWriter().tag(1, INT).int32(13).tag(2, LEN).string(message).finish()
}

function duration(ms: number): Uint8Array {
  const nanos = Math.round((ms % 1_000) * 1e6)
  return new BinaryWriter()
    .tag(1, INT)
    .int32(Math.floor(ms / 1_000))
    .tag(2, INT)
    .int32(nanos)
    .finish()
}

function text(writer: BinaryWriter, no: number, value: string): void {
  writer.tag(no, LEN).string(value)
}

function bytes(writer: BinaryWriter, no: number, value: Uint8Array): void {
  writer.tag(no, LEN).bytes(value)
}
