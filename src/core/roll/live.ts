import type { DrainableProvider } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'

/** Rolls under way in this process: ESM and CJS copies of this module meet here. */
const LIVE = Symbol.for('drainable.rolls.1')

function live(): Set<string> {
  const shared = globalThis as unknown as Record<symbol, Set<string> | undefined>
  return (shared[LIVE] ??= new Set())
}

/**
 * Enters a roll, so that no second one acts on the same servers from the same ticket.
 *
 * @returns leaves it
 * @throws `CONFLICT` where it is under way already
 */
export function enterRoll(
  { name, instance }: DrainableProvider,
  id: string,
  subject: string,
): () => void {
  const key = JSON.stringify([name, instance, id])
  const rolls = live()
  if (rolls.has(key)) {
    throw new DrainableError(
      'CONFLICT',
      `${subject}: roll '${id}' is under way in this process; wait for its end, or close it first`,
    )
  }
  rolls.add(key)
  return () => rolls.delete(key)
}
