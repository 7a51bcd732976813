import type { Clock } from 'drainable/provider'

/** A clock that runs that many times faster than the real one, for devices that are slow. */
export function quickClock(times: number): Required<Clock> {
  const wall = Date.now()
  const start = performance.now()
  const now = (): number => (performance.now() - start) * times
  return {
    now,
    setTimeout(fn, ms) {
      const timer = setTimeout(fn, ms / times)
      return () => clearTimeout(timer)
    },
    wall: () => wall + now(),
  }
}
