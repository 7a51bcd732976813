import type { Reading, Snapshot } from '../provider/contract.js'
import type { Lane, Look } from './lane.js'
import { pick, type ResolvedTarget } from './target.js'

/** The first look at a target: what it hits, and the look itself. */
export async function firstLook(
  lane: Lane,
  target: ResolvedTarget,
  signal: AbortSignal,
): Promise<{
  readonly look: Look & { readonly snapshot: Snapshot }
  readonly readings: readonly Reading[]
}> {
  const look = await lane.look(target.kind === 'members' ? target.refs : 'all', signal)
  return { look, readings: pick(target, look.snapshot) }
}
