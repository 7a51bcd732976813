import { printable } from '../../provider/quote.js'

/** Text that is HTML or SVG already. */
export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** What can stand in a template: a text or number is escaped, markup is not, nothing is left out. */
export type Content = string | number | Markup | readonly Markup[] | undefined

const NAMED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** A text from outside as text of a page, also within a quoted attribute. */
export function escapeText(text: string): string {
  return printable(text).replace(/[&<>"']/g, (found) => NAMED[found] ?? '')
}

/** A template of HTML or SVG. All that it is given is escaped, unless it is markup. */
export function markup(parts: TemplateStringsArray, ...values: readonly Content[]): Markup {
  return new Markup(parts.map((part, i) => part + contentText(values[i])).join(''))
}

function contentText(value: Content): string {
  if (value === undefined) return ''
  if (value instanceof Markup) return value.text
  if (typeof value === 'object') return value.map(({ text }) => text).join('\n')
  return escapeText(String(value))
}
