import type { CallContext, Change, ChangeResult } from '../../../provider/contract.js'
import { formatRef } from '../../../provider/member-ref.js'
import { notOurs } from '../sources/observed-endpoints.js'
import { refusal } from '../../../kit/errors.js'

/**
 * Changes of what another control plane owns: none is made. A hold of a member that is drained already finds what it
 * asks for.
 */
export function refuseChanges(
  changes: readonly Change[],
  isDrained: (change: Change) => boolean,
  ctx: CallContext,
): readonly ChangeResult[] {
  return changes.map((change, i) => {
    const { ref, kind } = change
    const isSo = kind === 'hold' && change.to === 'drain' && isDrained(change)
    const { message } = notOurs(formatRef(ref))
    const error = refusal('UNSUPPORTED', message, { provider: 'envoy', ref }, false)
    const result: ChangeResult = isSo
      ? { ref, status: 'unchanged' }
      : { ref, status: 'rejected', error }
    ctx.result?.(i, result)
    return result
  })
}
