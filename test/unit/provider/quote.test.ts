import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DrainableError } from 'drainable/provider'
import { quote } from '../../../src/provider/quote.js'

const BAD = /[\p{Cc}\p{Cf}\u2028\u2029]/u

test('no control character of a terminal or log reaches a message', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
      expect(new DrainableError('REJECTED', `no: ${text}`).message).not.toMatch(BAD)
      expect(quote(text)).not.toMatch(BAD)
    }),
  )
})

test.each([
  ['\u001b[31mred\u001b[0m', '[31mred [0m'],
  ['one\r\ntwo', 'one two'],
  ['\u009b2J', '2J'],
  ['abc\u202Etxt', 'abc txt'],
  ['grüße 日本', 'grüße 日本'],
])('%j', (text, shown) => expect(quote(text)).toBe(shown))

test('a long text is cut', () => {
  expect(quote('x'.repeat(201))).toBe(`${'x'.repeat(200)}…`)
  expect(quote('x'.repeat(200))).toBe('x'.repeat(200))
})
