import type { JsonObject } from '../../../kit/json.js'
import type { Json } from '../../../provider/contract.js'
import type { Endpoint, EndpointNative } from './assignment.js'
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
