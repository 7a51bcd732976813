import { wordsOf } from './call.js'
import type { MemberRef } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef, refKey } from '../../provider/member-ref.js'
import type { RunState } from './run-state.js'

/**
 * Runs the caller's own health check of a member, and takes its answer in.
 *
 * @param changed - called when the answer was taken in
 */
export async function checkHealth(
  run: RunState,
  ref: MemberRef,
  changed: () => void,
): Promise<void> {
  const { check } = run.spec
  let error: DrainableError | null = null
  try {
    await check?.(ref, run.stop.signal)
  } catch (cause) {
    error = unhealthy(ref, cause)
  }
  if (run.isReleased()) return
  run.sender?.send(run.members?.take(refKey(ref), { type: 'checked', error }) ?? [])
  changed()
}

function unhealthy(ref: MemberRef, cause: unknown): DrainableError {
  const words = wordsOf(cause)
  return new DrainableError(
    'HEALTH_TIMEOUT',
    `${formatRef(ref)}: the caller's health check failed: ${words}; it stays as it is`,
    { ref, cause },
  )
}
