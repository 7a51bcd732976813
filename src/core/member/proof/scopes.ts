import { isInForce } from '../../../provider/member-ref.js'
import type { AdminState, LoadScope, Snapshot } from '../../../provider/contract.js'
import type { Claim, ProofState, ScopeTrack } from '../record.js'

/** An answer slower than this can mean that the product stood still, in milliseconds. */
const SLOW_ANSWER = 250

/** The note of a known process that no look lists. */
export const NOT_LISTED = 'it is no longer listed, and nothing reported its end'

/** A scope that ended, or lost its counters, while its last reading showed work. */
export interface LostScope {
  readonly scope: string
  readonly active: number
  /** Why it only counts as ended, where its end was not seen and follows from nothing. */
  readonly note?: string
}

/** The scopes after one more reading. */
export interface TrackedScopes {
  readonly scopes: ReadonlyMap<string, ScopeTrack>
  readonly ended: number
  readonly lost: readonly LostScope[]
}

/** What one look shows about processes. */
export interface ScopeLook {
  readonly listed: readonly LoadScope[]
  readonly ended: Snapshot['ended']
  readonly took: number
  readonly at: number
  /** The state that a process must have taken for the hold to be in force, see `neededState`. */
  readonly wish: AdminState | 'none'
}

/**
 * Merges the scopes of one reading into the known ones.
 *
 * A scope stays until its end is certain; then it is counted as ended and dropped, so that scopes of reloads do not
 * pile up. A scope that is no longer listed is unread, because nothing shows that it has ended.
 */
export function trackScopes(proof: ProofState, look: ScopeLook): TrackedScopes {
  const scopes = new Map(proof.scopes)
  const lost: LostScope[] = []
  let ended = proof.ended
  const end = (name: string, note?: string): void => {
    const known = scopes.get(name)
    if (known === undefined) return
    const work = workOf(known.read)
    if (work > 0) lost.push({ scope: name, active: work, ...(note !== undefined && { note }) })
    scopes.delete(name)
    ended += 1
  }
  const seen = new Set<string>()
  for (const scope of look.listed) {
    seen.add(scope.scope)
    const before = scopes.get(scope.scope)
    if (scope.state === 'ended') {
      // A process that was never seen alive still counts: every process that could hold work has ended.
      if (before === undefined) ended = Math.max(1, ended)
      end(scope.scope, scope.note)
      continue
    }
    const known = before?.read ?? null
    const replaced =
      known !== null && scope.state === 'read' && known.incarnation !== scope.incarnation
    const moved = replaced && look.listed.some((other) => other.incarnation === known.incarnation)
    if (replaced && !moved && workOf(known) > 0)
      lost.push({ scope: scope.scope, active: workOf(known) })
    scopes.set(
      scope.scope,
      advance(replaced ? undefined : before, scope, proof.effectiveSince, look),
    )
  }
  for (const [name, track] of [...scopes]) {
    if (seen.has(name)) continue
    if (look.ended === 'unlisted' || look.ended?.includes(name) === true) end(name)
    else {
      const last: LoadScope = { ...track.last, state: 'unread', note: NOT_LISTED }
      scopes.set(name, { ...track, zeros: null, last })
    }
  }
  return { scopes, ended, lost }
}

/**
 * Adds processes that an earlier look listed and whose counts there prove nothing: each must be read, or have ended,
 * before idle is reported.
 */
export function expectScopes(proof: ProofState, listed: readonly LoadScope[]): ProofState {
  const known = new Map(proof.scopes)
  for (const scope of listed) {
    if (scope.state === 'ended' || known.has(scope.scope)) continue
    const unread: LoadScope = { ...scope, state: 'unread' }
    known.set(
      scope.scope,
      advance(undefined, unread, null, { listed, ended: undefined, took: 0, at: 0, wish: 'none' }),
    )
  }
  return { ...proof, scopes: known }
}

/** Ends all processes, because the product counts nothing for a member that is gone. */
export function endAll(proof: ProofState): TrackedScopes {
  return trackScopes(proof, { listed: [], ended: 'unlisted', took: 0, at: 0, wish: 'none' })
}

function workOf(scope: LoadScope | null): number {
  return scope === null ? 0 : scope.active + scope.queued
}

// eslint-disable-next-line complexity -- each field says by itself when it starts anew
function advance(
  before: ScopeTrack | undefined,
  scope: LoadScope,
  effectiveSince: number | null,
  { at, took, wish }: ScopeLook,
): ScopeTrack {
  const fresh: ScopeTrack = before ?? {
    last: scope,
    read: null,
    quietFrom: at,
    livedFrom: null,
    stalled: 0,
    zeros: null,
    arrivalsAtEffect: null,
    steadySince: at,
  }
  if (scope.state !== 'read') return { ...fresh, last: scope, zeros: null }
  const moved = fresh.read !== null && fresh.read.arrivals !== scope.arrivals
  const inForce = isInForce(scope, wish)
  // Work that came while the hold was not in force can be hidden: the quiet time begins when it is in force.
  const unquiet =
    moved ||
    !inForce ||
    fresh.read === null ||
    !isInForce(fresh.read, wish) ||
    wentBack(fresh.read, scope)
  const counts = effectiveSince !== null && inForce && scope.sampledAt > effectiveSince
  const zeros = moved ? null : fresh.zeros
  const idle = scope.active === 0 && scope.queued === 0
  const stalled = unquiet ? 0 : fresh.stalled + (took > SLOW_ANSWER ? took : 0)
  return {
    last: scope,
    read: scope,
    quietFrom: unquiet ? at : fresh.quietFrom,
    livedFrom: unquiet || fresh.livedFrom === null ? (scope.lived ?? null) : fresh.livedFrom,
    livedBefore: unquiet ? undefined : fresh.read.lived,
    stalled,
    zeros: !counts || !idle ? null : { first: zeros?.first ?? scope, last: scope },
    arrivalsAtEffect: counts ? (fresh.arrivalsAtEffect ?? scope.arrivals ?? null) : null,
    steadySince: fresh.read?.active === scope.active ? fresh.steadySince : at,
  }
}

/** Whether the product's own clock went back: then it is not known how long it has run since. */
function wentBack({ lived: before }: LoadScope, { lived }: LoadScope): boolean {
  return before !== undefined && lived !== undefined && lived < before
}

/** Resets the samples after the hold took effect anew: no earlier reading counts any more. */
export function forgetSamples(
  scopes: ReadonlyMap<string, ScopeTrack>,
): ReadonlyMap<string, ScopeTrack> {
  return new Map(
    [...scopes].map(([name, track]) => [
      name,
      { ...track, zeros: null, arrivalsAtEffect: null, livedFrom: null, stalled: 0 },
    ]),
  )
}

/** Whether one scope counts as idle, or what it still lacks. */
export type ScopeVerdict =
  | { readonly idle: true; readonly quietSince: number; readonly arrivals: 'unchanged' | 'unknown' }
  | {
      readonly idle: false
      readonly lacks: 'reading' | 'force' | 'zero' | 'second-sample' | 'quiet' | 'release'
      /** Milliseconds until it can be idle at the earliest, if only time is missing; 0 or less: the next look decides. */
      readonly wait: number
      /** The moment that its numbers must be from. Null: time alone does not help. */
      readonly needs: number | null
    }

/** The parameters of the idle rule. */
export interface IdleRule {
  readonly settle: number
  readonly blind: number
  readonly freshness: number
  readonly counts: 'requests' | 'connections' | 'none'
  readonly effectiveSince: number
  readonly wish: AdminState | 'none'
  /** Whether a product that says when it has released the member is waited for: not behind a seal, nor at the deadline. */
  readonly awaitsRelease: boolean
}

/** The quiet time, in milliseconds, if the product does not count arrivals. */
const QUIET_WITHOUT_ARRIVALS = 3_000
/** Two samples closer than this show the same moment, in milliseconds. */
const SAMPLE_GAP = 5
/** Two looks closer than this can show the same damaged moment of the product, in milliseconds. */
const ABSENCE_GAP = 20

/**
 * How far apart two looks must be to show that a member is gone, in milliseconds. A drain waits as long as a count can be
 * old, because what it calls gone may be stopped. A watch tells with the next look: it proves nothing by that, and a
 * list of members is no count (BIG-IP and Citrix ADC answer it from their present configuration).
 */
export function absenceGap({ goal, policy }: Claim): number {
  return goal.kind === 'watch' ? ABSENCE_GAP : Math.max(ABSENCE_GAP, policy.capabilities.freshness)
}

/** Whether one scope meets the idle rule (rules 2 to 4 of the definition of idle). */
// eslint-disable-next-line complexity -- the rule of one process, read in one piece
export function judgeScope(track: ScopeTrack, rule: IdleRule, now: number): ScopeVerdict {
  const { last, zeros } = track
  const lacks = (
    what: Extract<ScopeVerdict, { idle: false }>['lacks'],
    wait = 0,
    needs: number | null = null,
  ): ScopeVerdict => ({ idle: false, lacks: what, wait, needs })
  if (last.state !== 'read') return lacks('reading')
  if (!isInForce(last, rule.wish)) return lacks('force')
  if (rule.counts === 'none') {
    return last.released === true && last.sampledAt > rule.effectiveSince
      ? { idle: true, quietSince: rule.effectiveSince, arrivals: 'unknown' }
      : lacks('release')
  }
  if (zeros === null) {
    const isOld = last.active + last.queued === 0 && last.sampledAt <= rule.effectiveSince
    return lacks('zero', 0, isOld ? rule.effectiveSince : null)
  }
  const gap = Math.max(SAMPLE_GAP, rule.freshness)
  const spread = zeros.last.sampledAt - zeros.first.sampledAt
  const released = zeros.last.released === true
  if (last.arrivals === undefined) {
    const need = Math.max(QUIET_WITHOUT_ARRIVALS, rule.settle, rule.blind, released ? 0 : gap)
    const until = zeros.first.sampledAt + need + track.stalled
    if (zeros.last.sampledAt < until || !livedThrough(track, rule))
      return lacks('quiet', until - now, until)
    if (last.released === false && rule.awaitsRelease) return lacks('release')
    return { idle: true, quietSince: zeros.first.sampledAt, arrivals: 'unknown' }
  }
  const since = Math.max(track.quietFrom, rule.effectiveSince, hiddenUntil(track))
  // The product's own clock makes up for slow answers only if it can be read now.
  const stalled = last.lived === undefined ? track.stalled : 0
  const quietAt = since + Math.max(rule.settle, rule.blind) + stalled
  const secondAt = zeros.first.sampledAt + (released ? 0 : gap)
  const needs = Math.max(quietAt, secondAt)
  if (zeros.last.sampledAt < quietAt || !livedThrough(track, rule))
    return lacks('quiet', quietAt - now, needs)
  if (!released && spread < gap) return lacks('second-sample', secondAt - now, needs)
  return { idle: true, quietSince: since, arrivals: 'unchanged' }
}

/**
 * Whether the product's own clock shows that its blind time has passed; true if it has no such clock.
 *
 * The reading before the newest one must show it. If a process stood still (or waited for a processor) in the middle
 * of its work, its clock jumps: the look and the hidden work that is due are then handled in one turn, and the look
 * can come first. The next look can't.
 */
function livedThrough(track: ScopeTrack, { blind }: IdleRule): boolean {
  const { last, livedBefore } = track
  const livedFrom = last.mayHide === true ? track.zeros?.first.lived : track.livedFrom
  if (livedFrom === undefined || livedFrom === null || last.lived === undefined) return true
  return livedBefore !== undefined && livedBefore - livedFrom >= blind
}

/**
 * The moment from which nothing can have hidden between two counts, as far as the process tells: the first of the
 * zeros, if work may be in neither count; otherwise always.
 */
function hiddenUntil({ last, zeros }: ScopeTrack): number {
  return last.mayHide === true && zeros !== null ? zeros.first.sampledAt : -Infinity
}
