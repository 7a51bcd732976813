/** Median, and from the least to the most, in milliseconds; the first value is told apart: it is cold. */
export function figures(values: readonly number[]): string {
  const [first = 0, ...rest] = values
  const warm = (rest.length === 0 ? [first] : rest).toSorted((x, y) => x - y)
  const at = (share: number): string =>
    (warm[Math.min(warm.length - 1, Math.floor(warm.length * share))] ?? 0).toFixed(1)
  return `median ${at(0.5)} ms (${at(0)} to ${at(1)}), first ${first.toFixed(1)} ms`
}
