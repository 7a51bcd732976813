import { atLeast } from '../../../provider/admin-state.js'
import type { ChangeOf } from '../../../kit/change.js'
import type { AdminState, ChangeResult, MemberRef } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { PROVIDER } from '../session/session.js'
import type { RuntimeView } from '../read/read.js'
import type { Sent } from './step.js'

/** The state that a change asks for. */
export function wishOf(change: ChangeOf<'hold' | 'restore'>): Pick<Sent, 'wished' | 'exactly'> {
  return { wished: change.to, exactly: change.kind === 'restore' }
}

/** Whether a state is the wished one. */
export function isDone(
  { wished, exactly }: Pick<Sent, 'wished' | 'exactly'>,
  own: AdminState | 'unknown' | undefined,
): boolean {
  if (own === undefined || own === 'unknown') return false
  return exactly ? own === wished : atLeast(own, wished)
}

/** Whether a refusal can't hide that HAProxy did it all the same: see `askServer`. */
export function isFinal(refused: DrainableError | undefined): boolean {
  return refused !== undefined && refused.code !== 'NOT_FOUND' && refused.code !== 'REJECTED'
}

/** What became of a change that was sent, by the look after it. */
// eslint-disable-next-line complexity -- every pair of what was answered and what is seen
export function settle(sent: Sent, view: RuntimeView, reloaded: boolean): ChangeResult {
  const { ref, wished, exactly, lost, refused, terminated } = sent
  const found = view.pools.get(ref.pool)?.get(ref.member)
  const own = found?.verdict.own
  if (isDone(sent, own) && !reloaded) {
    const cut = terminated === undefined ? {} : { terminated, atMost: true }
    return { ref, status: 'applied', ...cut }
  }
  const seen = found === undefined ? 'gone' : `'${found.rows[0]?.status ?? ''}'`
  const doubt = found?.verdict.doubt === undefined ? '' : `: ${found.verdict.doubt}`
  const absent = found === undefined && refused?.code === 'NOT_FOUND'
  const denied = refused?.code === 'NOT_FOUND' && !absent
  const error =
    lost ??
    (refused === undefined || denied ? undefined : about(ref, refused)) ??
    new DrainableError(
      'CONFLICT',
      denied
        ? `${formatRef(ref)}: '${wished}' was answered with "not found", but its status is ${seen}; the API may not have reached HAProxy`
        : reloaded
          ? `${formatRef(ref)}: HAProxy was reloaded while '${wished}' was set; it is ${seen} now`
          : `${formatRef(ref)}: '${wished}' was answered with 200, but its status is ${seen}${doubt}`,
      // the API takes it for done, or another client has changed it at once
      { provider: PROVIDER, ref, retryable: denied || reloaded },
    )
  if (absent && !reloaded) return { ref, status: 'rejected', error }
  const hidden = own === undefined || own === 'unknown' || (exactly && found?.verdict.hidden)
  // what was cut can't be put back
  const open =
    lost !== undefined || denied || reloaded || hidden === true || terminated !== undefined
  return { ref, status: open ? 'unknown' : 'rejected', error }
}

/** The same error, with the member it is about. */
export function about(ref: MemberRef, error: DrainableError): DrainableError {
  if (error.ref !== undefined) return error
  return new DrainableError(error.code, `${formatRef(ref)}: ${error.message}`, {
    provider: PROVIDER,
    ref,
    retryable: error.retryable,
    cause: error,
  })
}
