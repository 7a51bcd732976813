import { DrainableError } from '../../provider/error.js'

/** Labels of an object. */
type Labels = Readonly<Record<string, string>>

/**
 * A label selector as kubectl takes it: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`,
 * `!a`, with commas between them. `!=` and `notin` hold where the label is missing, as in Kubernetes.
 *
 * @throws `INVALID_OPTIONS` for anything else
 */
export function parseLabelSelector(text: string, subject: string): (labels: Labels) => boolean {
  const terms = splitTerms(text)
    .map((term) => term.trim())
    .filter((term) => term !== '')
    .map((term) => parseTerm(term, text, subject))
  return (labels) => terms.every((holds) => holds(labels))
}

const KEY = String.raw`((?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)`
const SET = new RegExp(String.raw`^${KEY}\s+(in|notin)\s*\(([^()]*)\)$`)
const EQUAL = new RegExp(String.raw`^${KEY}\s*(==|=|!=)\s*([A-Za-z0-9._-]*)$`)
const EXISTS = new RegExp(String.raw`^(!?)\s*${KEY}$`)

function parseTerm(term: string, whole: string, subject: string): (labels: Labels) => boolean {
  const set = SET.exec(term)
  if (set) {
    const [, key = '', operator, list = ''] = set
    const values = list.split(',').map((value) => value.trim())
    return operator === 'in'
      ? (labels) => hasLabel(labels, key) && values.includes(labels[key] ?? '')
      : (labels) => !hasLabel(labels, key) || !values.includes(labels[key] ?? '')
  }
  const equal = EQUAL.exec(term)
  if (equal) {
    const [, key = '', operator, value = ''] = equal
    return operator === '!='
      ? (labels) => !hasLabel(labels, key) || labels[key] !== value
      : (labels) => hasLabel(labels, key) && labels[key] === value
  }
  const exists = EXISTS.exec(term)
  if (exists) {
    const [, not, key = ''] = exists
    return (labels) => hasLabel(labels, key) === (not === '')
  }
  throw new DrainableError(
    'INVALID_OPTIONS',
    `${subject}: selector '${whole}' has the term '${term}', expected one such as a=b, a!=b, a in (b,c), a notin (b,c), a or !a`,
  )
}

function hasLabel(labels: Labels, key: string): boolean {
  return Object.hasOwn(labels, key)
}

/** At the commas that are not inside of brackets. */
function splitTerms(text: string): string[] {
  return text.split(/,(?![^(]*\))/)
}
