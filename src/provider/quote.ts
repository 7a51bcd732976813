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
