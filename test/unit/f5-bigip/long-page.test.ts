import { expect, test } from 'vitest'
import { classify } from '../../../src/adapters/f5-bigip/codec/errors.js'

// A search that tries every blank against every other takes hours for this, and stops the event loop.
test.each(['<title>', '<title', '<', '</', '\u001b', ' '])(
  'a page of a hundred thousand blanks after %j is read at once',
  (head) => {
    const text = head + ' '.repeat(100_000) + '<'.repeat(50_000)
    expect(classify(400, text).kind).toBe('refused')
  },
)
