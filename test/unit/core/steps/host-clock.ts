import { vi } from 'vitest'
import type { FakeClock } from 'drainable/testing'

/** The wall clock of the machine that a step runs on: it moves with the drain's clock, and by jumps. */
export interface HostClock {
  /** Moves the wall clock alone, as NTP or an operator does, or as the next step runs on another machine. */
  jumpWall(ms: number): void
}

/** Puts the wall clock in the hands of the test. Undone by `vi.restoreAllMocks()`. */
export function hostClock(clock: FakeClock): HostClock {
  let wall = Date.UTC(2026, 0, 1)
  Object.assign(clock, { wall: undefined }) // as a clock that leaves wall time to the machine
  vi.spyOn(Date, 'now').mockImplementation(() => wall + clock.now())
  return { jumpWall: (ms) => void (wall += ms) }
}
