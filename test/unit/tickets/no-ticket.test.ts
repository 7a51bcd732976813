import { describe, expect, test } from 'vitest'
import { restore, resumeDrain, stepDrain, type Ticket } from 'drainable'
import { fakeProvider } from 'drainable/testing'

const lb = fakeProvider({ pools: { web: ['web1'] } })

describe('a ticket that there is none of', () => {
  test('restore() says what that means', async () => {
    const error: unknown = await restore(lb, undefined as never).catch((e: unknown) => e)
    expect(error).toMatchObject({ code: 'TICKET_INVALID' })
    expect(String(error)).toContain('there is no ticket (found undefined): the store has none')
  })

  test('resumeDrain() says what that means', () => {
    expect(() => resumeDrain(lb, null as never)).toThrow('there is no ticket (found null)')
  })

  test('stepDrain() with a target alone is told how to begin', async () => {
    const from = { pool: 'web', member: 'web1' } as unknown as Ticket
    const error: unknown = await stepDrain(lb, from).catch((e: unknown) => e)
    expect(String(error)).toContain('found a target alone: write { target: ... }')
  })
})
