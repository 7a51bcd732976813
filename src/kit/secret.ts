import * as z from 'zod/mini'
import { askOption } from '../provider/abort.js'
import type { Clock } from '../provider/clock.js'
import type { Secret } from '../provider/option-schemas.js'
import { DrainableError } from '../provider/error.js'

/** The `password` option of every adapter that logs in. The value never reaches a message. */
export const secretSchema = z.custom<Secret>(
  (value) => typeof value === 'function' || (typeof value === 'string' && value !== ''),
  {
    error: ({ input }) =>
      input === ''
        ? 'is empty, expected a string or a function that returns one; is the variable that it comes from set?'
        : 'expected a string or a function that returns one',
  },
)

/**
 * Reads the secret's present value.
 *
 * @param field - the name of the option
 * @param clock - measures the 20 s that a function has. Default: the real clock
 * @throws what the function threw; `CALL_TIMEOUT` if it does not answer; `INVALID_OPTIONS` if it returns no text
 */
export async function readSecret(secret: Secret, field: string, clock?: Clock): Promise<string> {
  const value: unknown =
    typeof secret === 'function'
      ? await askOption(field, secret, clock === undefined ? {} : { clock })
      : secret
  if (typeof value === 'string' && value !== '') return value
  const what = value === '' ? 'an empty string' : 'no string'
  throw new DrainableError('INVALID_OPTIONS', `${field}: the function returned ${what}`)
}

/** Replaces every occurrence of the secrets in a text: for the words of a product that repeats what it was sent. */
export function redact(text: string, secrets: readonly string[]): string {
  let safe = text
  for (const secret of secrets) {
    if (secret.length === 0) continue
    for (const form of new Set([
      secret,
      encodeURIComponent(secret),
      JSON.stringify(secret).slice(1, -1),
      Buffer.from(secret).toString('base64'),
    ])) {
      safe = safe.replaceAll(form, '***')
    }
  }
  return safe
}
