/** Most that a message quotes of a text from outside, in characters. */
const MOST = 200

/**
 * What moves a terminal's cursor, colours or reorders its text, or breaks a line of a log: control
 * characters (C0, C1, ESC), invisible format characters (bidi, zero width) and line separators.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\u2028\u2029]+/gu

/** A text as one line that may be printed anywhere; nothing else is changed. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, ' ')
}

/**
 * A text from outside (a reply, a name, an id) for a message: one line, trimmed, and cut. What is longer
 * than it can be shown is cut before it is looked at, so a long one costs nothing.
 */
export function quote(text: string, most = MOST): string {
  const line = printable(text.slice(0, 4 * most)).trim()
  return line.length > most || text.length > 4 * most ? `${line.slice(0, most)}…` : line
}
