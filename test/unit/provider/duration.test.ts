import { expect, test } from 'vitest'
import { toDuration } from 'drainable'

test.each(['30s', '1.5h', '250ms', 60_000])(
  'a valid duration %j from outside is returned',
  (value) => {
    expect(toDuration(value, 'DRAIN_TIMEOUT')).toBe(value)
  },
)

test.each(['30', '', '30sec', undefined, -1])('%j from outside is refused by its name', (value) => {
  expect(() => toDuration(value, 'DRAIN_TIMEOUT')).toThrow(
    /^DRAIN_TIMEOUT is .*, expected milliseconds or a text with its unit, such as 30000 or '30s'/,
  )
})

test('without a name the message says the duration', () => {
  expect(() => toDuration('soon')).toThrow(/^the duration is 'soon', expected/)
})
