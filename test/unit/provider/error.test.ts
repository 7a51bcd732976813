import { inspect } from 'node:util'
import { isDrainableError, roll } from 'drainable'
import { DrainableError } from 'drainable/provider'
import { fakeProvider } from 'drainable/testing'
import { expect, test } from 'vitest'

async function stopped(): Promise<unknown> {
  const lb = fakeProvider({ pools: { web: ['web1', 'web2'] } })
  const act = (): Promise<void> => Promise.reject(new Error('exit 1'))
  return roll(lb, { pool: 'web' }, { act, settle: '0ms' }).catch((error: unknown) => error)
}

test('an error is printed without its report, which it carries', async () => {
  const error = await stopped()
  const printed = inspect(error, { depth: 4 })
  expect(printed).toContain('the roll stopped with 0 of 2 servers done')
  expect(printed).toContain("code: 'ROLL_STOPPED'")
  expect(printed).toContain('exit 1')
  expect(printed).not.toContain('untouched')
  expect(Object.keys(error as object)).not.toContain('roll')
  expect(isDrainableError(error, 'ROLL_STOPPED') && error.roll.servers).toHaveLength(2)
})

test('an error class has its name, however it was built', () => {
  expect(DrainableError.name).toBe('DrainableError')
})
