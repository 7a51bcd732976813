import { abortable } from '../../provider/abort.js'
import type { MemberRef } from '../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../provider/error.js'
import { formatRef, refKey } from '../../provider/member-ref.js'
import { wordsOf } from '../../provider/thrown.js'
import { checkUnanswered } from '../machine/decide/open.js'
import type { RunState } from './run-state.js'
import { Alarm } from './look/timer.js'

/**
 * Runs the caller's own health check of a member and takes in its answer, at the latest when the time of its goal is
 * over, whether the check listens to its signal or not.
 *
 * @param changed - called when the answer was taken in
 */
export async function checkHealth(
  run: RunState,
  ref: MemberRef,
  changed: () => void,
): Promise<void> {
  const error = await askCaller(run, ref)
  if (run.isReleased()) return
  run.sender?.send(run.members?.take(refKey(ref), { type: 'checked', error }) ?? [])
  changed()
}

/** Why the member is not healthy by the caller's check; null if it is. */
async function askCaller(run: RunState, ref: MemberRef): Promise<DrainableError | null> {
  const { spec, stop } = run
  const own = new AbortController()
  const onStop = (): void => own.abort(stop.signal.reason)
  stop.signal.addEventListener('abort', onStop, { once: true })
  const goal = run.members?.get(refKey(ref))?.goal
  const until = goal?.kind === 'open' ? goal.until : null
  const alarm = new Alarm(spec.clock, run.broken)
  if (until !== null) alarm.set(until, () => own.abort(checkUnanswered(ref, until - run.startedAt)))
  try {
    // In an async function, so that a check that throws synchronously is handled like any other failure.
    const said: unknown = await abortable((async () => spec.check?.(ref, own.signal))(), own.signal)
    return said === false ? unhealthy(ref, 'it gave false') : null
  } catch (cause) {
    return isDrainableError(cause) && cause === own.signal.reason
      ? cause
      : unhealthy(ref, wordsOf(cause), cause)
  } finally {
    alarm.clear()
    stop.signal.removeEventListener('abort', onStop)
  }
}

function unhealthy(ref: MemberRef, words: string, cause?: unknown): DrainableError {
  return new DrainableError(
    'HEALTH_TIMEOUT',
    `${formatRef(ref)}: the caller's health check failed: ${words}; it stays as it is`,
    { ref, cause },
  )
}
