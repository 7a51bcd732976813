import type { LoadScope } from '../../provider/contract.js'
import type { DrainState, ScopeTrack } from './state.js'

/** How long nothing may arrive before a member whose product does not count arrivals is taken as quiet. */
const QUIET_WITHOUT_ARRIVALS = 3_000
/** Two samples closer than that see one moment. */
const SAMPLE_GAP = 20

/** A scope that ended, or lost its memory, while its last reading held work. */
export interface LostScope {
  readonly scope: string
  readonly active: number
}

/** The scopes after one more reading. */
export interface TrackedScopes {
  readonly scopes: Readonly<Record<string, ScopeTrack>>
  readonly lost: readonly LostScope[]
}

/**
 * Takes one reading's scopes into what is known.
 *
 * A scope once seen stays: one that is not listed any more without having been called `ended` is
 * unread, because nobody said that it is gone.
 */
export function trackScopes(
  state: DrainState,
  listed: readonly LoadScope[],
  at: number,
): TrackedScopes {
  const scopes: Record<string, ScopeTrack> = { ...state.scopes }
  const lost: LostScope[] = []
  const seen = new Set<string>()
  for (const scope of listed) {
    seen.add(scope.scope)
    const before = scopes[scope.scope]
    if (before?.last.state === 'ended' && scope.state === 'ended') continue
    const known = before?.last.state === 'ended' ? null : (before?.read ?? null)
    const replaced =
      known !== null && scope.state === 'read' && known.incarnation !== scope.incarnation
    const work = known === null ? 0 : known.active + known.queued
    const moved = replaced && listed.some((other) => other.incarnation === known.incarnation)
    if (work > 0 && (scope.state === 'ended' || (replaced && !moved))) {
      lost.push({ scope: scope.scope, active: work })
    }
    const anew = replaced || before?.last.state === 'ended'
    scopes[scope.scope] = advance(anew ? undefined : before, scope, state.effectiveSince, at)
  }
  for (const [name, track] of Object.entries(scopes)) {
    if (seen.has(name) || track.last.state === 'ended') continue
    const held = (track.read?.active ?? 0) + (track.read?.queued ?? 0)
    if (track.resumed && (held > 0 || track.last.state === 'unread'))
      lost.push({ scope: name, active: held })
    const last = { ...track.last, state: track.resumed ? ('ended' as const) : ('unread' as const) }
    scopes[name] = { ...track, zeros: null, last }
  }
  return { scopes, lost }
}

function advance(
  before: ScopeTrack | undefined,
  scope: LoadScope,
  effectiveSince: number | null,
  at: number,
): ScopeTrack {
  const fresh: ScopeTrack = before ?? {
    last: scope,
    read: null,
    quietFrom: at,
    zeros: null,
    arrivalsAtEffect: null,
    steadySince: at,
    resumed: false,
  }
  if (scope.state !== 'read') return { ...fresh, last: scope, zeros: null, resumed: false }
  const moved = fresh.read !== null && fresh.read.arrivals !== scope.arrivals
  const unquiet = moved || !scope.inForce || fresh.read === null
  const counts = effectiveSince !== null && scope.inForce && scope.sampledAt > effectiveSince
  const zeros = moved ? null : fresh.zeros
  const work = scope.active + scope.queued
  return {
    last: scope,
    read: scope,
    quietFrom: unquiet ? at : fresh.quietFrom,
    zeros: !counts || work > 0 ? null : { first: zeros?.first ?? scope, last: scope },
    arrivalsAtEffect: counts ? (fresh.arrivalsAtEffect ?? scope.arrivals ?? null) : null,
    steadySince: fresh.read?.active === scope.active ? fresh.steadySince : at,
    resumed: false,
  }
}

/** The scopes after the hold took effect anew: nothing read before counts any more. */
export function forgetSamples(
  scopes: Readonly<Record<string, ScopeTrack>>,
): Readonly<Record<string, ScopeTrack>> {
  return Object.fromEntries(
    Object.entries(scopes).map(([name, track]) => [
      name,
      { ...track, zeros: null, arrivalsAtEffect: null },
    ]),
  )
}

/** What one scope still lacks before it counts as idle. */
export type ScopeVerdict =
  | { readonly idle: true; readonly quietSince: number; readonly arrivals: 'unchanged' | 'unknown' }
  | {
      readonly idle: false
      readonly lacks: 'reading' | 'force' | 'zero' | 'second-sample' | 'quiet' | 'release'
      /** Milliseconds until it can be idle at the earliest, where that is a matter of time alone. */
      readonly wait: number
    }

/** What the rule needs to know, beside the scope itself. */
export interface IdleRule {
  readonly settle: number
  readonly blind: number
  readonly freshness: number
  readonly counts: 'requests' | 'connections' | 'none'
  readonly effectiveSince: number
}

/** Whether one scope satisfies the idle rule (rules 2 to 4 of the definition of idle). */
export function judgeScope(track: ScopeTrack, rule: IdleRule, now: number): ScopeVerdict {
  const { last, zeros } = track
  if (last.state === 'ended')
    return { idle: true, quietSince: rule.effectiveSince, arrivals: 'unchanged' }
  if (last.state === 'unread') return { idle: false, lacks: 'reading', wait: 0 }
  if (!last.inForce) return { idle: false, lacks: 'force', wait: 0 }
  if (rule.counts === 'none') {
    return last.released === true && last.sampledAt > rule.effectiveSince
      ? { idle: true, quietSince: rule.effectiveSince, arrivals: 'unknown' }
      : { idle: false, lacks: 'release', wait: 0 }
  }
  if (zeros === null) return { idle: false, lacks: 'zero', wait: 0 }
  const gap = Math.max(SAMPLE_GAP, rule.freshness)
  const spread = zeros.last.sampledAt - zeros.first.sampledAt
  const released = zeros.last.released === true
  if (last.arrivals === undefined) {
    const need = Math.max(QUIET_WITHOUT_ARRIVALS, rule.settle, rule.blind, released ? 0 : gap)
    if (spread < need)
      return { idle: false, lacks: 'quiet', wait: zeros.first.sampledAt + need - now }
    return { idle: true, quietSince: zeros.first.sampledAt, arrivals: 'unknown' }
  }
  const since = Math.max(track.quietFrom, rule.effectiveSince)
  const quietAt = since + Math.max(rule.settle, rule.blind)
  if (zeros.last.sampledAt < quietAt) return { idle: false, lacks: 'quiet', wait: quietAt - now }
  if (!released && spread < gap) {
    return { idle: false, lacks: 'second-sample', wait: zeros.first.sampledAt + gap - now }
  }
  return { idle: true, quietSince: since, arrivals: 'unchanged' }
}
