import { vi } from 'vitest'

/** Waits until the expectations hold. The deadline is for a loaded machine; what holds is seen within milliseconds. */
export function eventually<T>(expectations: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(expectations, { timeout: 15_000, interval: 2 })
}
