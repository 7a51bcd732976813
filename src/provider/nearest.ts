/** How many letters two names must share to count as a longer and a shorter spelling of one name. */
const SHARED = 4

/**
 * Finds the name that was probably meant, for a message; undefined if none is near.
 *
 * A name is near if it differs only in case, if one begins with the other (`timeoutMs`, `pass`), or if at most a
 * third of its letters are changed.
 */
export function nearest(given: string, known: Iterable<string>): string | undefined {
  const wished = given.toLowerCase()
  let best: string | undefined
  let least = Infinity
  for (const name of known) {
    const distance = apart(wished, name.toLowerCase())
    if (distance >= least) continue
    best = name
    least = distance
  }
  return best
}

/** Lists the known names, as the end of a sentence; only the first ones of many. */
export function quotedList(names: readonly string[], most = 12): string {
  const shown = names.slice(0, most).map((name) => `'${name}'`)
  const more = names.length - shown.length
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ')
}

function apart(a: string, b: string): number {
  if (a === b) return 0
  const allowed = Math.floor(Math.max(a.length, b.length) / 3)
  const distance = Math.abs(a.length - b.length) > allowed ? Infinity : edits(a, b)
  if (distance <= allowed) return distance
  const [short, long] = a.length < b.length ? [a, b] : [b, a]
  return short.length >= SHARED && long.startsWith(short) ? long.length - short.length : Infinity
}

/** The edit distance: letters inserted, left out, replaced or swapped with their neighbour. */
function edits(a: string, b: string): number {
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row[j] = Math.min(
        (last[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (last[j - 1] ?? 0) + (same ? 0 : 1),
        swapped ? (before[j - 2] ?? 0) + 1 : Infinity,
      )
    }
    before = last
    last = row
  }
  return last[b.length] ?? Infinity
}
