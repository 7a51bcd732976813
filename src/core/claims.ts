import type { DrainableProvider, MemberRef } from '../provider/contract.js'
import { refKey } from '../provider/member-ref.js'
import type { DrainState } from './machine/state.js'

/** Drains of this process that speak for a member, by provider and member. */
const claims = new WeakMap<DrainableProvider, Map<string, Set<Claim>>>()

/** One drain that speaks for a member. */
export interface Claim {
  /** Called when another call of this process makes the member ready: stop holding it. */
  readonly yield: () => void
}

/** Says that a drain speaks for a member; the returned function takes that back. */
export function claim(provider: DrainableProvider, ref: MemberRef, own: Claim): () => void {
  const byMember = claims.get(provider) ?? new Map<string, Set<Claim>>()
  claims.set(provider, byMember)
  const key = refKey(ref)
  const holders = byMember.get(key) ?? new Set<Claim>()
  byMember.set(key, holders)
  holders.add(own)
  return () => {
    holders.delete(own)
    if (holders.size === 0) byMember.delete(key)
  }
}

/** Whether any drain of this process speaks for a member. */
export function isClaimed(provider: DrainableProvider, ref: MemberRef): boolean {
  return claims.get(provider)?.has(refKey(ref)) ?? false
}

/** Makes every drain of this process let go of a member: it is about to be made ready. */
export function yieldClaims(provider: DrainableProvider, ref: MemberRef): void {
  for (const holder of [...(claims.get(provider)?.get(refKey(ref)) ?? [])]) holder.yield()
}

/** Members whose idle was announced by a drain that has let go of them since. */
const announced = new WeakMap<DrainableProvider, Map<string, DrainState>>()

/** A drain lets go of an idle member: whoever watches from now on need not announce it again. */
export function leaveIdle(provider: DrainableProvider, state: DrainState): void {
  const byMember = announced.get(provider) ?? new Map<string, DrainState>()
  announced.set(provider, byMember.set(refKey(state.ref), state))
}

/** What the last drain left, once. */
export function takeIdle(provider: DrainableProvider, ref: MemberRef): DrainState | undefined {
  const byMember = announced.get(provider)
  const state = byMember?.get(refKey(ref))
  byMember?.delete(refKey(ref))
  return state
}
