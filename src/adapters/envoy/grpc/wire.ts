/**
 * Protobuf on the wire, where a message must be edited and not re-made: fields are cut out and put
 * in, and everything else keeps its bytes and its order.
 *
 * A message is a row of fields, each a varint tag (number and kind) and its value; kind 2 is a length
 * and that many bytes.
 */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'

/** One field as it lies in the message. */
export interface WireField {
  readonly no: number
  /** Tag and value. */
  readonly raw: Uint8Array
  /** The value of a length-delimited field. */
  readonly body: Uint8Array | undefined
}

/** What a message has beside the fields of one number. */
export interface Around {
  readonly before: Uint8Array
  readonly after: Uint8Array
}

/** @throws Error on bytes that are no message */
export function* fieldsOf(message: Uint8Array): Generator<WireField> {
  const reader = new BinaryReader(message)
  while (reader.pos < reader.len) {
    const start = reader.pos
    const [no, type] = reader.tag()
    let body: Uint8Array | undefined
    if (type === WireType.LengthDelimited) body = reader.bytes()
    else reader.skip(type, no)
    yield { no, raw: message.subarray(start, reader.pos), body }
  }
}

/** The message without some of its fields. */
export function without(message: Uint8Array, ...numbers: readonly number[]): Uint8Array {
  const kept: Uint8Array[] = []
  for (const { no, raw } of fieldsOf(message)) if (!numbers.includes(no)) kept.push(raw)
  return concat(kept)
}

/** The last value of a length-delimited field. */
export function bodyOf(message: Uint8Array, number: number): Uint8Array | undefined {
  let found: Uint8Array | undefined
  for (const { no, body } of fieldsOf(message))
    if (no === number && body !== undefined) found = body
  return found
}

/** A message cut in three: its length-delimited fields of one number, and what stands before and after the first of them. */
export function around(
  message: Uint8Array,
  number: number,
): { readonly around: Around; readonly bodies: readonly Uint8Array[] } {
  const before: Uint8Array[] = []
  const after: Uint8Array[] = []
  const bodies: Uint8Array[] = []
  for (const { no, raw, body } of fieldsOf(message)) {
    if (no === number && body !== undefined) bodies.push(body)
    else (bodies.length === 0 ? before : after).push(raw)
  }
  return { around: { before: concat(before), after: concat(after) }, bodies }
}

/** The message with a varint field set, in the place it had, or where its number belongs; 0 leaves it out. */
export function withVarint(message: Uint8Array, number: number, value: number): Uint8Array {
  const parts: Uint8Array[] = []
  const field =
    value === 0 ? [] : [new BinaryWriter().tag(number, WireType.Varint).int32(value).finish()]
  let placed = false
  for (const { no, raw } of fieldsOf(message)) {
    if (!placed && no >= number) {
      parts.push(...field)
      placed = true
    }
    if (no !== number) parts.push(raw)
  }
  if (!placed) parts.push(...field)
  return concat(parts)
}

/** Tag and length of a length-delimited field. */
export function head(number: number, length: number): Uint8Array {
  return new BinaryWriter().tag(number, WireType.LengthDelimited).uint32(length).finish()
}

export function concat(parts: readonly Uint8Array[]): Uint8Array {
  let length = 0
  for (const part of parts) length += part.length
  const whole = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
