import * as undici from 'undici'
import { expect, test } from 'vitest'
import { genuine } from '../../../src/kit/http.js'

test('undici itself is accepted', () => {
  expect(genuine(undici)).toBe(undici)
})

// Bun 1.4.5: class Agent extends Dispatcher {}, and a request() that never looks at it.
test('a module whose agent is an empty shell, as in Bun, is refused', () => {
  const shell = { ...undici, Agent: Object } as unknown as typeof undici
  expect(() => genuine(shell)).toThrow(
    expect.objectContaining({
      code: 'UNSUPPORTED',
      message: expect.stringMatching(/as Bun does: .*on Node\.js or Deno/) as unknown,
    }),
  )
})
