import type { CallContext, Change, ChangeResult } from '../../../provider/contract.js'
import { formatRef } from '../../../provider/member-ref.js'
import { quote } from '../../../provider/quote.js'
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
    const words = `${quote(formatRef(ref))}: observedEndpoints() only looks, another control plane owns the endpoints: drain there and watch() here, or hand its own way over with callbackEndpoints()`
    const error = refusal('UNSUPPORTED', words, { provider: 'envoy', ref }, false)
    const result: ChangeResult = isSo
      ? { ref, status: 'unchanged' }
      : { ref, status: 'rejected', error }
    ctx.result?.(i, result)
    return result
  })
}
