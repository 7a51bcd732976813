import { parseJson, type JsonValue, type Source } from '../../../kit/json.js'

/** Who answered, for the words of an error. */
export const NOBODY = 'Envoy'

/** A reply of the admin API, which is an object always. */
export function answer(text: string, path: string, from: string): JsonValue {
  const reply = parseJson(text, sourceOf(path, from))
  reply.needed('an object').object()
  return reply
}

export function sourceOf(path: string, from: string): Source {
  return { provider: 'envoy', what: `${from} ${path}` }
}

/** A proto3 JSON duration: `0.250s`. */
export function seconds(value: JsonValue): number | undefined {
  const text = value.text()
  if (text === undefined) return undefined
  if (/^-?\d{1,12}(\.\d{1,9})?s$/.test(text)) return Number(text.slice(0, -1)) * 1_000
  throw value.wrong('a duration such as 0.250s')
}
