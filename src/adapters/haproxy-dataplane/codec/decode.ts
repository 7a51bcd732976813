import * as z from 'zod/mini'
import { parseJson } from '../../../kit/json.js'
import { DrainableError } from '../../../provider/error.js'
import { whole } from '../../../provider/option-schemas.js'
import { quote } from '../../../provider/quote.js'

/** Whose errors these are. */
export const PROVIDER = 'haproxy-dataplane'

/** A count as the product gives it. */
export const count = whole(0)

/** What is thrown where a reply is not what it must be. */
export function malformed(what: string, expected: string, found: unknown): DrainableError {
  const shown = typeof found === 'string' ? found : JSON.stringify(found)
  return new DrainableError(
    'MALFORMED_REPLY',
    `${what}: expected ${expected}, found '${quote(shown)}'`,
    { provider: PROVIDER },
  )
}

/** v2 answers some things as a list, v3 as one object. */
export function oneOrMany<T>(schema: z.ZodMiniType<T>): z.ZodMiniType<readonly T[]> {
  return z.union([
    z.array(schema),
    z.pipe(
      schema,
      z.transform((one) => [one]),
    ),
  ])
}

/** A reply's text as a schema wants it. */
export function decode<T>(schema: z.ZodMiniType<T>, text: string, what: string): T {
  const json = parseJson(text, { provider: PROVIDER, what })
  const parsed = schema.safeParse(json.value ?? null)
  if (parsed.success) return parsed.data
  const path = parsed.error.issues[0]?.path.join('.')
  throw malformed(what, path ? `a usable ${path}` : 'another shape', text)
}
