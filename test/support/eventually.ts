import { vi } from 'vitest'

/** Waits until the expectations hold. The deadline is for a loaded machine; what holds is seen within milliseconds. */
export function eventually<T>(expectations: () => T | Promise<T>, timeout = 15_000): Promise<T> {
  return vi.waitFor(expectations, { timeout, interval: 2 })
}
