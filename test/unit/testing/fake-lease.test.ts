import { describe, expect, test } from 'vitest'
import { fakeClock, fakeLease } from 'drainable/testing'

const clock = fakeClock()

describe('fakeLease', () => {
  test.each<[string, object | undefined, string]>([
    ['no options', undefined, 'clock: expected a clock, such as fakeClock()'],
    ['a clock that is none', { clock: {} }, 'clock: expected a clock, such as fakeClock()'],
    [
      'a misspelt option',
      { clock, latancy: 5 },
      "unknown option 'latancy', did you mean 'latency'",
    ],
    ['a wrong latency', { clock, latency: '5ms' }, 'latency: expected milliseconds, 0 or more'],
    [
      'a getter that throws',
      {
        get clock(): never {
          throw new Error('no clock yet')
        },
      },
      "its getter threw 'no clock yet'",
    ],
  ])('refuses %s', (_, options, words) => {
    expect(() => fakeLease(options as never)).toThrow(`fakeLease(): ${words}`)
  })
})
