import { uptime } from 'node:os'
import { vi } from 'vitest'
import type { FakeClock } from 'drainable/testing'
import { host } from '../../../../src/core/tickets/host.js'

/** What a step reads of the machine it runs on. All of it moves with the drain's clock. */
export interface HostClock {
  /** Moves the wall clock alone, as NTP or an operator does. */
  jumpWall(ms: number): void
  /** Moves the time since boot alone. */
  jumpUptime(ms: number): void
  /** From now on it is another machine, or another boot of this one. */
  otherBoot(wallAhead?: number): void
}

/** How many of the units that `host.uptime()` counts in make a second. */
const PER_SECOND = host.uptime() > 100 * uptime() ? 1_000 : 1

/** Puts wall clock, uptime and boot id in the hands of the test. Undone by `vi.restoreAllMocks()`. */
export function hostClock(clock: FakeClock): HostClock {
  let wall = Date.UTC(2026, 0, 1)
  let since = 7 * 24 * 3_600_000
  let boots = 1
  const now = (): number => wall + clock.now()
  Object.assign(clock, { wall: undefined }) // as a clock that leaves wall time to the machine
  vi.spyOn(Date, 'now').mockImplementation(now)
  vi.spyOn(host, 'now').mockImplementation(now)
  vi.spyOn(host, 'uptime').mockImplementation(() => ((since + clock.now()) / 1_000) * PER_SECOND)
  vi.spyOn(host, 'boot').mockImplementation(() => `boot-${boots}`)
  return {
    jumpWall: (ms) => void (wall += ms),
    jumpUptime: (ms) => void (since += ms),
    otherBoot: (wallAhead = 0) => {
      boots += 1
      since += 3_600_000
      wall += wallAhead
    },
  }
}
