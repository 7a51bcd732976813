import type { Clock } from 'drainable/provider'

/** Shorter than any limit of a call, longer than any pause between two, in milliseconds. */
const PAUSE = 1_000

/** A clock whose pauses are over at once; what limits a call takes its time. */
export function shortPauses(onNow: () => void = () => undefined): Clock {
  let skipped = 0
  return {
    now: () => {
      onNow()
      return performance.now() + skipped
    },
    setTimeout: (fn, ms) => {
      if (ms >= PAUSE) {
        const timer = setTimeout(fn, ms)
        return () => clearTimeout(timer)
      }
      skipped += ms
      const timer = setImmediate(fn)
      return () => clearImmediate(timer)
    },
  }
}
