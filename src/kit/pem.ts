import { readFileSync } from 'node:fs'
import { DrainableError } from '../provider/error.js'

/** A value that can be printed as a path: with an extension, it can't be a key in base64 or hex. */
const PATH = /^[\w./@~ -]{1,200}\.[a-z]{2,5}$/i

/**
 * Reads PEM text, as given or from the named file.
 *
 * A value that is neither can be the key itself in another form (DER in base64, a missing line), and the system's
 * error repeats it: so the value of a private key is never printed, and another value only if it looks like a path.
 *
 * @param field - its name, for the message; one that ends in `key` is a private key
 * @throws `INVALID_OPTIONS` if it is neither PEM text nor a readable PEM file
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
