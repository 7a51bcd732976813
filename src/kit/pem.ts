import { readFileSync } from 'node:fs'
import { DrainableError } from '../provider/error.js'

/** What may be printed of a value that was to be a path: with an extension, it can't be a key in base64 or hex. */
const PATH = /^[\w./@~ -]{1,200}\.[a-z]{2,5}$/i

/**
 * PEM text, as given or from the file that is named.
 *
 * A value that is neither may be the key itself in another form (DER in base64, a line too few), and the
 * system's own words repeat it: so a private key's value is never printed, and another's only where it
 * looks like a path.
 *
 * @param field - its name, for the message; one that ends in `key` is a private key
 * @throws `INVALID_OPTIONS` where it is neither PEM text nor a readable file of it
 */
export function readPem(value: string, field: string): string {
  if (value.includes('-----BEGIN ')) return value
  const expected = `${field}: expected PEM text ('-----BEGIN ...') or the path of a readable PEM file`
  const isPath = PATH.test(value) && !/key$/i.test(field)
  let text: string
  try {
    text = readFileSync(value, 'utf8')
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'an error'
    const what = isPath ? `could not read '${value}'` : 'what was given could not be read'
    throw new DrainableError('INVALID_OPTIONS', `${expected}, ${what} (${code})`)
  }
  if (text.includes('-----BEGIN ')) return text
  const where = isPath ? `'${value}'` : 'the file that was named'
  throw new DrainableError('INVALID_OPTIONS', `${expected}, found no PEM text in ${where}`)
}
