import type { Change } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import type { Standpoint } from './look.js'

/** What the caller is told when a change is not made. */
export interface Refusal {
  readonly status: 'rejected'
  readonly error: DrainableError
}

/** What speaks against a change before anything is sent. */
export function refuse(
  change: Change,
  found: Standpoint,
  desiredState: 'refuse' | 'try',
): Refusal | undefined {
  const { entry, traits, own } = found
  const name = formatRef(change.ref)
  if (change.identity !== undefined && change.identity !== entry.identity) {
    return reject(
      'CONFLICT',
      `${name} is another member now (another server, address or port), nothing was sent`,
      change,
      false,
    )
  }
  if (own === 'unknown') {
    return reject(
      'CONFLICT',
      `${name} is '${entry.svrstate}', which says nothing about its state, nothing was sent`,
      change,
      true, // the next look may say more
    )
  }
  const desired = traits.autoscale === 'API' || traits.autoscale === 'DNS'
  if (desired && desiredState === 'refuse') {
    return reject(
      'UNSUPPORTED',
      `service group '${change.ref.pool}' has autoscale ${traits.autoscale}: its members are kept by the desired state or by DNS, drain there, or set desiredState: 'try'`,
      change,
    )
  }
  return undefined
}

export function refuseUnsupported(change: Change): Refusal | undefined {
  if (change.kind === 'remove') {
    const why = `${formatRef(change.ref)} is not unbound here, since that cuts what is left on it: drain it, then unbind it with the tool that owns the configuration`
    return reject('UNSUPPORTED', why, change)
  }
  if (change.kind === 'add') {
    const why = `${formatRef(change.ref)} is not bound here: bind it with the tool that owns the configuration, then make it ready`
    return reject('UNSUPPORTED', why, change)
  }
  return undefined
}

export function notFound(change: Change): Refusal {
  const why = `${formatRef(change.ref)}: neither a service group with that member ('server:port') nor a virtual server with that service`
  return reject('NOT_FOUND', why, change)
}

export function reject(
  code: 'CONFLICT' | 'UNSUPPORTED' | 'NOT_FOUND' | 'REJECTED',
  why: string,
  { ref }: Change,
  retryable?: boolean,
): Refusal {
  const data = { provider: 'citrix-adc', ref, ...(retryable === undefined ? {} : { retryable }) }
  return { status: 'rejected', error: new DrainableError(code, why, data) }
}

export function withRef(error: DrainableError, { ref }: Change): DrainableError {
  const { code, message, retryable } = error
  return new DrainableError(code, message, { provider: 'citrix-adc', ref, retryable })
}
