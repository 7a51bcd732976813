/** A quantile of milliseconds, of any order. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN
}

/** The middle and the tail, for a line of output. */
export function spread(values: readonly number[]): string {
  const at = (share: number): string => quantile(values, share).toFixed(1)
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, n ${values.length}`
}
