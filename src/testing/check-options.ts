import { unknownName } from '../provider/describe-issue.js'
import { DrainableError } from '../provider/error.js'

/**
 * Refuses options that the fake does not know: a misspelt one would be a test of something else.
 *
 * @param known - every option by its name
 * @throws `INVALID_OPTIONS`
 */
export function refuseUnknown(options: object, known: Readonly<Record<string, true>>): void {
  for (const key of Object.keys(options)) {
    if (!Object.hasOwn(known, key)) throw wrongOption(unknownName(key, Object.keys(known)))
  }
}

/** What {@link refuseUnknown} throws, for what else is wrong with an option. */
export function wrongOption(text: string): DrainableError {
  return new DrainableError('INVALID_OPTIONS', `startFake(): ${text}`)
}
