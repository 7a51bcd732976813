import { formatRef } from '../../provider/member-ref.js'
import type { Reading } from '../../provider/contract.js'
import { refuse } from '../check.js'
import { SUBJECT } from './check-plan.js'

/**
 * What a function of the caller said about a member. Only true and false count: the promise of an
 * `async` function would claim, or remove, every member.
 */
export function answer(name: 'owns' | 'idle', said: unknown, { ref }: Reading): boolean {
  if (typeof said === 'boolean') return said
  return refuse(SUBJECT, `${name}(${formatRef(ref)})`, said, 'true or false')
}
