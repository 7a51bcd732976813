import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isCut, parseJson, type JsonValue } from '../../../src/kit/json.js'

const source = { provider: 'toy', what: 'GET /things' }
const of = (value: unknown): JsonValue => parseJson(JSON.stringify(value), source)

describe('the text of a reply', () => {
  test('is a lost connection if it ends anywhere in its middle', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.json()), fc.nat(), (given, at) => {
        const text = JSON.stringify(given)
        const cut = text.slice(0, 1 + (at % (text.length - 1)))
        expect(isCut(cut)).toBe(true)
        expect(() => parseJson(cut, source)).toThrow(
          expect.objectContaining({ code: 'CONNECTION_LOST', retryable: true, provider: 'toy' }),
        )
      }),
    )
  })

  test.each(['', '<html>', 'Done', '{oops', '{"a":1}}', '[1] [', '"half'])(
    'is malformed if it is not JSON: %j',
    (text) => {
      expect(isCut(text)).toBe(false)
      expect(() => parseJson(text, source)).toThrow(
        expect.objectContaining({ code: 'MALFORMED_REPLY', retryable: false }),
      )
    },
  )

  test('is quoted short, printable and without secrets', () => {
    const clean = (text: string): string => text.replaceAll('s3cret', '***')
    const text = `\u001b[31m<html>s3cret\u202e${'x'.repeat(100_000)}`
    try {
      parseJson(text, { ...source, clean })
      expect.unreachable()
    } catch (error) {
      const { message } = error as Error
      expect(message).toMatch(/^GET \/things: expected JSON, found '/)
      expect(message).toContain('<html>***')
      expect(message).not.toMatch(/[\p{Cc}\p{Cf}]/u)
      expect(message.length).toBeLessThan(300)
    }
  })
})

describe('a value', () => {
  test('that is absent reads as undefined or empty', () => {
    for (const value of [of({}).at('a'), of({}).at('a').at('b')]) {
      expect(value.present).toBe(false)
      expect([value.list(), value.rows(), value.fields()]).toEqual([[], [], []])
      expect([value.text(), value.count(), value.flag(), value.object()]).toEqual(
        Array(4).fill(undefined),
      )
    }
  })

  test('that is null reads as absent, unless it should be a list', () => {
    const value = of({ a: null }).at('a')
    expect([value.present, value.text(), value.count(), value.at('b').present]).toEqual([
      false,
      undefined,
      undefined,
      false,
    ])
    expect(() => value.list()).toThrow('a to be a list, found null')
  })

  test('under a name that every object inherits is absent', () => {
    expect(of({}).at('constructor').present).toBe(false)
  })

  test.each<[string, (value: JsonValue) => unknown, unknown, string]>([
    ['list', (value) => value.list(), 'many', "a.b[0].c to be a list, found 'many'"],
    ['rows', (value) => value.rows(), [{}, 1], 'a.b[0].c[1] to be an object, found 1'],
    ['object', (value) => value.at('d'), [1, 2], 'a.b[0].c to be an object, found a list of 2'],
    ['text', (value) => value.text(), 7, 'a.b[0].c to be a text, found 7'],
    ['needed text', (value) => value.neededText(), '', "a text that is not empty, found ''"],
    ['count', (value) => value.count(), -1, 'a whole number from 0 up, found -1'],
    ['count as a text', (value) => value.count(), '1', "a whole number from 0 up, found '1'"],
    ['half a count', (value) => value.count(), 1.5, 'a whole number from 0 up, found 1.5'],
    ['needed count', (value) => value.neededCount(), null, 'from 0 up, found null'],
    ['digits', (value) => value.digits(), '-1', "from 0 up, found '-1'"],
    ['flag', (value) => value.flag(), 'yes', "true or false, found 'yes'"],
    ['word', (value) => value.word(), { e: 1 }, "found an object with 'e'"],
    ['number', (value) => value.number(), '1', "a number, found '1'"],
  ])('of a wrong shape is malformed: %s', (_, read, wrong, words) => {
    const value = of({ a: { b: [{ c: wrong }] } })
      .at('a')
      .at('b')
      .list()[0]!
      .at('c')
    expect(() => read(value)).toThrow(expect.objectContaining({ code: 'MALFORMED_REPLY' }))
    expect(() => read(value)).toThrow(words)
  })

  test('of the right shape is read', () => {
    expect(
      of([1, '2'])
        .list()
        .map((item) => item.digits()),
    ).toEqual([1, 2])
    expect([of(true).word(), of(1.5).word(), of('x').word()]).toEqual(['true', '1.5', 'x'])
    expect(
      of({ a: 1 })
        .fields()
        .map(([key, value]) => [key, value.count()]),
    ).toEqual([['a', 1]])
  })
})
