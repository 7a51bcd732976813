import { systemClock, type Clock } from '../provider/clock.js'

/**
 * A timer that does not keep the process alive: for what goes on after the work is done. On another
 * clock than the real one it is that clock's own timer.
 */
export function setBackgroundTimer(clock: Clock, fn: () => void, ms: number): () => void {
  if (clock !== systemClock) return clock.setTimeout(fn, ms)
  const timer = setTimeout(fn, ms)
  timer.unref()
  return () => clearTimeout(timer)
}

/** Longest timer a process can set, in milliseconds; longer ones are set again. */
export const LONGEST_TIMER = 2 ** 31 - 1
