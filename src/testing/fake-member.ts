import { atLeast } from '../provider/member-ref.js'
import type { AdminState, Health, MemberRef } from '../provider/contract.js'

/** A member of the fake balancer. */
export interface FakeMember {
  readonly ref: MemberRef
  readonly address: string
  readonly port: number
  readonly weight: number
  identity: string
  own: AdminState
  inherited: AdminState | undefined
  health: Health
}

/** The own or the inherited state, whichever lets less in. */
export function highest(member: FakeMember | undefined): AdminState | undefined {
  if (member === undefined) return undefined
  const { own, inherited = 'ready' } = member
  return atLeast(inherited, own) ? inherited : own
}

/** Whether it gets new work. */
export function serves({ own, inherited, health, weight }: FakeMember): boolean {
  return own === 'ready' && (inherited ?? 'ready') === 'ready' && health !== 'down' && weight > 0
}
