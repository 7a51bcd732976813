/** What a set in JSON and one in protobuf have in common: an edit keeps all that it does not mean as it was. */
import { createHash } from 'node:crypto'
import type { JsonObject } from '../../../kit/json.js'
import type { Json } from '../../../provider/contract.js'
import type { Assignment, Endpoint, EndpointNative, NewEndpoint } from './assignment.js'
import type { EdsStatus } from './status.js'

/** What is known of an endpoint, in whatever form it came. */
export type EndpointFields = Omit<Endpoint, 'native'>

/** One endpoint of a set with what it was made of, which is carried along as it is. */
export abstract class BaseEndpoint<Raw> implements Endpoint {
  readonly member: string | undefined
  readonly address: string | undefined
  readonly port: number | undefined
  readonly hostname: string | undefined
  readonly status: EdsStatus | undefined
  readonly weight: number | undefined
  readonly priority: number
  readonly labels: JsonObject | undefined
  readonly raw: Raw
  readonly #locality: string
  readonly #place: readonly [number, number]

  constructor(
    fields: EndpointFields,
    raw: Raw,
    locality: string,
    place: readonly [number, number],
  ) {
    this.member = fields.member
    this.address = fields.address
    this.port = fields.port
    this.hostname = fields.hostname
    this.status = fields.status
    this.weight = fields.weight
    this.priority = fields.priority
    this.labels = fields.labels
    this.raw = raw
    this.#locality = locality
    this.#place = place
  }

  /** The endpoint as plain JSON. */
  protected abstract printed(): Json

  /** The same with another status, and with what it is made of then. */
  protected with(status: EdsStatus, raw: Raw): ConstructorParameters<typeof BaseEndpoint<Raw>> {
    const { member, address, port, hostname, weight, priority, labels } = this
    const fields = { member, address, port, hostname, status, weight, priority, labels }
    return [fields, raw, this.#locality, this.#place]
  }

  native(): EndpointNative {
    return {
      status: this.status ?? 'UNKNOWN',
      ...(this.weight === undefined ? {} : { weight: this.weight }),
      priority: this.priority,
      locality: this.#locality,
      place: this.#place,
      endpoint: this.printed(),
    }
  }
}

/** One locality with its endpoints, and what it was made of. */
export interface Group<Raw, E> {
  readonly raw: Raw
  readonly priority: number
  readonly locality: string
  readonly endpoints: readonly E[]
}

/** What is said of a whole set. */
export type SetFields = Pick<Assignment, 'cluster' | 'overprovisioning' | 'isWeighted'>

/** An endpoint that can have another status. */
type Edited<E> = Endpoint & { to(status: EdsStatus): E }

/** One set, as groups of endpoints. */
export abstract class BaseAssignment<E extends Edited<E>, Raw> implements Assignment {
  readonly cluster: string
  readonly endpoints: readonly E[]
  readonly overprovisioning: number
  readonly isWeighted: boolean
  protected readonly groups: readonly Group<Raw, E>[]
  #version: string | undefined

  constructor(
    { cluster, overprovisioning, isWeighted }: SetFields,
    groups: readonly Group<Raw, E>[],
  ) {
    this.cluster = cluster
    this.overprovisioning = overprovisioning
    this.isWeighted = isWeighted
    this.groups = groups
    this.endpoints = groups.flatMap(({ endpoints }) => endpoints)
  }

  /** The set as it goes out. */
  protected abstract content(): string | Uint8Array
  /** The same set with other groups. */
  protected abstract derived(groups: readonly Group<Raw, E>[]): this
  /** A locality for an endpoint that fits into none. */
  protected abstract newGroup(native: EndpointNative | undefined): Group<Raw, E>
  protected abstract newEndpoint(
    added: NewEndpoint,
    group: Group<Raw, E>,
    place: readonly [number, number],
  ): E

  get version(): string {
    this.#version ??= createHash('sha256').update(this.content()).digest('hex').slice(0, 16)
    return this.#version
  }

  withStatus(edits: ReadonlyMap<string, EdsStatus>): this {
    return this.#map((endpoint) => {
      const status = endpoint.member === undefined ? undefined : edits.get(endpoint.member)
      return status === undefined || status === endpoint.status ? endpoint : endpoint.to(status)
    })
  }

  without(members: ReadonlySet<string>): this {
    return this.#map((endpoint) =>
      endpoint.member !== undefined && members.has(endpoint.member) ? undefined : endpoint,
    )
  }

  withEndpoint(added: NewEndpoint): this {
    const { native } = added
    const groups = [...this.groups]
    const fits = (group: Group<Raw, E> | undefined): boolean =>
      group !== undefined &&
      (native === undefined ||
        (group.priority === native.priority && group.locality === native.locality))
    const first = native?.place[0] ?? 0
    let index = fits(groups[first]) ? first : groups.findIndex(fits)
    if (index === -1) index = groups.push(this.newGroup(native)) - 1
    const target = groups[index]
    if (target === undefined) return this
    const endpoints = [...target.endpoints]
    const place = Math.min(native?.place[1] ?? endpoints.length, endpoints.length)
    endpoints.splice(place, 0, this.newEndpoint(added, target, [index, place]))
    groups[index] = { ...target, endpoints }
    return this.derived(groups)
  }

  #map(edit: (endpoint: E) => E | undefined): this {
    const groups = this.groups.map((group) => {
      const endpoints = group.endpoints.flatMap((endpoint) => edit(endpoint) ?? [])
      const same =
        endpoints.length === group.endpoints.length &&
        endpoints.every((endpoint, i) => endpoint === group.endpoints[i])
      return same ? group : { ...group, endpoints }
    })
    if (groups.every((group, i) => group === this.groups[i])) return this
    return this.derived(groups)
  }
}
