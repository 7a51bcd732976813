/**
 * Settles with the work, or rejects with the signal's reason as soon as it fires. The work itself goes on after an
 * abort; its result is ignored, so a late failure is not an unhandled rejection.
 */
export function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason)
    // Attached even if the signal has fired already: otherwise a failure of the work would be an unhandled rejection.
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
}
