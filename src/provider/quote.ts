/** The most that a message quotes from an outside text, in characters. */
const MOST = 200

/**
 * Characters that move a terminal's cursor, colour or reorder its text, or break a log line: control characters (C0,
 * C1, ESC), invisible format characters (bidi, zero width) and line separators.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\u2028\u2029]+/gu

/** Makes a text one line that is safe to print anywhere; changes nothing else. */
export function printable(text: string): string {
  return isPlain(text) ? text : text.replace(UNPRINTABLE, ' ')
}

/** Whether all of it is printable ASCII, as nearly every name is: a look at 10,000 members has 50,000 texts. */
function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i)
    if (code < 0x20 || code > 0x7e) return false
  }
  return true
}

/**
 * Prepares an outside text (a reply, a name, an id) for a message: one line, trimmed, and cut. It cuts first, so a
 * long text costs nothing.
 */
export function quote(text: string, most = MOST): string {
  const line = printable(text.slice(0, 4 * most)).trim()
  return line.length > most || text.length > 4 * most ? `${line.slice(0, most)}…` : line
}

/** The longest hint, in characters: a longer one is cut when it is shown. */
const LONGEST_HINT = 900

/**
 * Lists names for people, as hints of limited length: `pools: a, b`, `pools, further: c`.
 *
 * @param what - the kind of names
 * @param names - each is listed once
 */
export function listed(what: string, names: readonly string[]): readonly string[] {
  const texts: string[] = []
  let text = ''
  for (const name of new Set(names)) {
    if (text !== '' && text.length + name.length > LONGEST_HINT) {
      texts.push(text)
      text = ''
    }
    text = text === '' ? name : `${text}, ${name}`
  }
  texts.push(text === '' ? 'none' : text)
  return texts.map((one, i) => `${what}${i === 0 ? '' : ', further'}: ${one}`)
}

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
