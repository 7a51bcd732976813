import { isDrainableError, type DrainableError } from 'drainable'
import type { ChangeResult } from 'drainable/provider'

export const WEB1 = { pool: 'web', member: 'web1' }
export const WEB2 = { pool: 'web', member: 'web2' }
export const NO_OLD = { oldWorkers: { within: '1ms' } } as const

export async function failing(call: Promise<unknown>): Promise<DrainableError> {
  const error: unknown = await call.then(
    (value) => new Error(`no failure: ${JSON.stringify(value)}`),
    (e: unknown) => e,
  )
  if (!isDrainableError(error)) throw error
  return error
}

export function errorOf(result: ChangeResult): DrainableError {
  if ('error' in result) return result.error
  throw new Error(`no error: ${result.status}`)
}
