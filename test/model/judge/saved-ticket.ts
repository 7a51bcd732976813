import type { AdminState, MemberRef } from 'drainable'
import { keyOf, type Member } from '../world/member.js'
import type { Judge } from './judge.js'
import type { Call } from '../user/drain-call.js'
import type { SentChange } from './sent-change.js'

/** What a ticket holds of a member, as far as it matters here. */
interface SavedMember {
  readonly ref: MemberRef
  readonly found: { readonly own: AdminState | 'unknown' } | null
  readonly set: AdminState | null
  readonly earlier: readonly AdminState[]
  readonly doubted: readonly AdminState[]
  readonly intended: SavedChange | null
  readonly late: readonly SavedChange[]
  /** Whether its hold was ever in place, and whether it is kept up. */
  readonly held: boolean
  readonly holding: boolean
}

interface SavedChange {
  readonly kind: string
  readonly to?: AdminState
}

/** Its changes without an answer. */
export function mayHaveSent({ intended, late }: SavedMember): readonly SavedChange[] {
  return [...late, ...(intended === null ? [] : [intended])]
}

export function savedMember(judge: Judge, id: string, key: string): SavedMember | undefined {
  const saved = judge.calls.find(({ chain }) => chain?.id === id)?.chain?.saved
  if (saved === undefined) return undefined
  const { members } = JSON.parse(saved) as { readonly members: readonly SavedMember[] }
  return members.find(({ ref }) => keyOf(ref) === key)
}

/**
 * Whether the ticket of a drain has a hold to this state, and an undo by it saw the member without, for no
 * longer than such a hold can be late: its process may have been killed while it sent it.
 */
export function mayBeLate(
  judge: Judge,
  { provider, candidates, change }: SentChange,
  id: string,
  { key, own, setter }: Member,
): boolean {
  const saved = savedMember(judge, id, key)
  if (saved === undefined || change.kind !== 'restore') return false
  const { set, earlier, doubted } = saved
  const mayBeSent = mayHaveSent(saved).some(({ kind, to }) => kind === 'hold' && to === own)
  if (!mayBeSent && ![set, ...earlier, ...doubted].includes(own)) return false
  const begun = Math.min(
    ...candidates.filter(({ chain }) => chain?.id === id).map(({ startedAt }) => startedAt),
  )
  const first = judge.looksAt(provider, key).find(({ askedAt }) => askedAt >= begun)
  if (first === undefined || first.readAt >= setter.at) return false
  return setter.at <= first.at + judge.truth.product.capabilities.lateBound
}

/**
 * Whether the ticket of a drain has a raise to this state, over a hold that was applied, as intended:
 * an undo takes that for its own in either state.
 */
export function raiseIntended(judge: Judge, id: string, { key, own }: Member): boolean {
  const saved = savedMember(judge, id, key)
  if (saved === undefined || saved.set === null) return false
  return mayHaveSent(saved).some(({ kind, to }) => kind === 'hold' && to === own)
}

/** Steps in a process that this drain was in, too: what they have announced is left to the next run there. */
function stepsBeside(judge: Judge, id: string): readonly Call[] {
  const processes = new Set(
    judge.calls.flatMap(({ chain, process }) => (chain?.id === id ? [process] : [])),
  )
  return judge.calls.filter(({ verb, process }) => verb === 'stepDrain' && processes.has(process))
}

/**
 * Whether a client set what a step of this drain had announced, or one of another drain that shared a process with
 * it, for as long as that can be late: it is in the ticket, and for all that the next step knows another one has sent it
 * and crashed.
 */
export function wasAnnounced(judge: Judge, id: string, { key, own, setter }: Member): boolean {
  const { lateBound } = judge.truth.product.capabilities
  return stepsBeside(judge, id).some(({ chain, provider }) =>
    chain?.announced.some((announced) => {
      if (announced.key !== key || announced.to !== own || setter.at < announced.at) return false
      const looks = judge.looksAt(provider, key)
      const first = looks.find(({ askedAt }) => askedAt > announced.at)
      if (first === undefined || setter.at <= first.at + lateBound) return true
      // Nothing was seen between the end of that time and the client's change: either may have set it.
      const settled = looks.find(({ readAt }) => readAt > first.at + lateBound)
      return settled === undefined || setter.at <= settled.readAt
    }),
  )
}

/**
 * Whether others set a member to its state before this drain, where a step of it, or of one that shared a process with it,
 * had announced that very state, also because it had found it so: for all that the next step knows another one has sent it and crashed.
 */
export function baseWasAnnounced(
  judge: Judge,
  id: string,
  { key, sets }: Member,
  base: AdminState | 'unclear' | undefined,
): boolean {
  return stepsBeside(judge, id).some(({ chain }) =>
    chain?.announced.some(
      (announced) =>
        announced.key === key && announced.to === base && sets.some(({ to }) => to === base),
    ),
  )
}
