/**
 * The work's end, or the signal's reason as soon as it fires; the work itself goes on, and its end is
 * not told any more, so a late failure is no unhandled rejection.
 */
export function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason)
    // In every case, also where the signal fired before: else a failure of the work would be an unhandled rejection.
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
}
