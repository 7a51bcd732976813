import type { JsonValue, Source } from '../../../kit/json.js'
import { parseAnswer } from '../../../kit/envoy/answers.js'

/** Who answered, for the words of an error. */
export const NOBODY = 'Envoy'

/** A reply of the admin API. */
export function answer(text: string, path: string, from: string): JsonValue {
  return parseAnswer(text, sourceOf(path, from))
}

export function sourceOf(path: string, from: string): Source {
  return { provider: 'envoy', what: `${from} ${path}` }
}
