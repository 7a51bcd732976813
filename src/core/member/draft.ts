import type { AdminState, Change, PresentReading, Reading } from '../../provider/contract.js'
import type { DrainableError } from '../../provider/error.js'
import type { Outcome, Phase } from '../../provider/report.js'
import { isSameIdentity } from '../../provider/member-ref.js'
import type { DrainEvent } from '../events.js'
import type { Effect, Input, LookInput } from './input.js'
import {
  type Claim,
  type EndingState,
  type Facts,
  type Incarnations,
  type Ledger,
  maintEffect,
  type MemberRecord,
  NO_FACTS,
  type ProofState,
} from './record.js'
import { claimedOf, type ClaimedMember, incarnationsOf, loadOf, ownOf } from './claimed.js'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** A claim during a step: its own fields are set, and what they hold is replaced, never changed. */
export type Open = Mutable<Claim>

/** The state of a member, where a reading shows it. */
export type Told = PresentReading & { readonly own: AdminState }

/** One step in progress. It works on copies, so the record that was given stays as it was. */
export class Draft {
  readonly ref: MemberRecord['ref']
  readonly views: Map<number, Mutable<Facts>>
  readonly ledger: Mutable<Ledger>
  readonly claims: Open[]
  readonly effects: Effect[] = []
  readonly input: Input
  readonly now: number
  readonly wall: number

  constructor(record: MemberRecord, input: Input) {
    this.ref = record.ref
    this.views = new Map([...record.views].map(([id, facts]) => [id, { ...facts }]))
    this.ledger = { ...record.ledger }
    this.claims = record.claims.map((claim) => ({ ...claim }))
    this.input = input
    this.now = input.at
    this.wall = input.wall
  }

  get record(): MemberRecord {
    const { ref, views, ledger, claims } = this
    return { ref, views, ledger, claims }
  }

  /** The look that this step takes in, if it is one of the claim's own view. */
  ownLook({ view }: Pick<Claim, 'view'>): LookInput | undefined {
    return this.input.type === 'look' && this.input.view === view ? this.input : undefined
  }

  /** The facts of one view, to be set. */
  view(id: number): Mutable<Facts> {
    const facts = this.views.get(id) ?? { ...NO_FACTS }
    this.views.set(id, facts)
    return facts
  }

  /** The member as a claim sees it now. */
  claimed(claim: Claim): ClaimedMember {
    return claimedOf(this, claim)
  }

  /** A moment of the balancer's clock as ISO 8601. */
  iso(at: number): string {
    return new Date(at + this.wall - this.now).toISOString()
  }

  /** The common fields of every event about the member. */
  get stamp(): { readonly at: string; readonly ref: MemberRecord['ref'] } {
    return { at: this.iso(this.now), ref: this.ref }
  }

  emit({ id }: Claim, event: DrainEvent): void {
    this.effects.push({ type: 'emit', claim: id, event })
  }

  fault(claim: Claim, error: DrainableError): void {
    this.emit(claim, { type: 'fault', ...this.stamp, error })
  }

  proof(claim: Open, change: Partial<ProofState>): void {
    claim.proof = { ...claim.proof, ...change }
  }

  ending(claim: Open, change: Partial<EndingState>): void {
    claim.ending = { ...claim.ending, ...change }
  }

  phase(claim: Open, to: Phase): void {
    const from = claim.phase
    if (from === to || from === 'removed') return
    claim.phase = to
    this.emit(claim, { type: 'phase', ...this.stamp, from, to })
  }

  /** Ends a claim; a hold that was kept up is still kept up. */
  end(claim: Open, outcome: Outcome, error: DrainableError | null = null): void {
    if (claim.ending.ended !== null) return
    this.ending(claim, { ended: { outcome, at: this.now, error } })
  }

  /** Ends a claim and stops keeping up its hold. */
  finish(claim: Open, outcome: Outcome, error: DrainableError | null = null): void {
    this.end(claim, outcome, error)
    this.ending(claim, { holding: false })
  }

  /** Tells the action of a claim that is held idle that its member is not idle any more: the first time counts. */
  lose(claim: Open, error: DrainableError): void {
    const { settled, holding } = claim.ending
    if (!settled || !holding) return
    this.effects.push({ type: 'lost', claim: claim.id, error })
  }

  /**
   * Asks for a change on behalf of a claim, unless one is under way, or a wait is.
   *
   * @returns whether it was asked for
   */
  send(claim: Claim, change: Change, first = false): boolean {
    const { ledger } = this
    if (ledger.pending !== null || this.now < ledger.notBefore) return false
    const claimed = this.claimed(claim)
    const cuts = cutBy(claimed, change)
    const before = ownOf(claimed)
    ledger.pending = { change, by: claim.id, stage: 'ticket', before, effect: 'unseen', cuts }
    // A process that begins after that is not known to have taken it.
    ledger.told = incarnationsOf(this.views)
    this.effects.push({ type: 'send', claim: claim.id, change, first })
    return true
  }

  /** These processes have our state now, or were seen without it: what is found in them later is no older state of ours. */
  tell(processes: Incarnations): void {
    const { ledger, views } = this
    const incarnations = incarnationsOf(views)
    const known = [...(ledger.told ?? [])].filter(([name]) => incarnations.has(name))
    ledger.told = new Map([...known, ...processes])
  }

  /** The identity for a change: a member with another one is left alone. */
  get identity(): { readonly identity?: string } {
    const identity = this.ledger.found?.identity ?? ''
    return identity === '' ? {} : { identity }
  }

  /** A reading that shows the state of the member itself; undefined for an absent, replaced or contradictory one. */
  tells(reading: Reading): Told | undefined {
    if (!reading.present || reading.own === 'unknown') return undefined
    if (!isSameIdentity(reading.identity, this.ledger.found?.identity)) return undefined
    return { ...reading, own: reading.own }
  }
}

/**
 * The work in flight that a change cuts if it is carried out now; null if it cuts nothing. A look beside the answer shows
 * the member after the cut: what was there before must be remembered when the change is sent.
 */
export function cutBy(claimed: ClaimedMember, change: Change): number | null {
  if (change.kind === 'terminate') return loadOf(claimed)
  const { removal = 'unknown' } = claimed.claim.policy.capabilities
  // What is gone with a removal is in no later count.
  if (change.kind === 'remove')
    return removal === 'cuts' || removal === 'unknown' ? loadOf(claimed) : null
  const reading = claimed.facts.last?.reading
  if (change.kind !== 'hold' || change.to !== 'maint' || reading?.present !== true) return null
  return maintEffect(claimed.claim.policy, reading) === 'gentle' ? null : loadOf(claimed)
}
