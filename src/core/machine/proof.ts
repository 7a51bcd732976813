import type { LoadScope } from '../../provider/contract.js'
import { formatDuration } from '../../provider/duration.js'
import { formatRef } from '../../provider/member-ref.js'
import type { Proof } from '../../provider/report.js'
import { judgeScope, type IdleRule } from './scopes.js'
import { atLeast, type DrainState, type MachinePolicy } from './state.js'

/** The rule for this member as it stands; null while no hold is in effect. */
export function idleRule(state: DrainState, policy: MachinePolicy): IdleRule | null {
  if (state.effectiveSince === null) return null
  const { blind, freshness, counts } = policy.capabilities
  return { settle: policy.settle, blind, freshness, counts, effectiveSince: state.effectiveSince }
}

/** Whether the member's own state is as wished. A member that vanished takes no work either. */
export function inWishedState(state: DrainState, policy: MachinePolicy): boolean {
  const reading = state.last?.reading
  if (reading === undefined) return false
  if (!reading.present) return true
  if (policy.mode === 'watch')
    return atLeast(reading.own, 'drain') || atLeast(reading.inherited ?? 'ready', 'drain')
  return state.wish !== 'none' && atLeast(reading.own, state.wish)
}

/**
 * The proof that a member is idle now, by the four rules; null while one of them is not satisfied.
 *
 * @param wallOffset - epoch milliseconds minus the drain's clock
 */
export function proveIdle(
  state: DrainState,
  policy: MachinePolicy,
  now: number,
  wallOffset: number,
): Proof | null {
  const rule = idleRule(state, policy)
  if (rule === null || state.blind !== null || !inWishedState(state, policy)) return null
  const tracks = Object.values(state.scopes)
  if (tracks.length === 0) return null
  const verdicts = tracks.map((track) => judgeScope(track, rule, now))
  let quietSince = rule.effectiveSince
  let unknown = false
  for (const verdict of verdicts) {
    if (!verdict.idle) return null
    quietSince = Math.max(quietSince, verdict.quietSince)
    unknown ||= verdict.arrivals === 'unknown'
  }
  const iso = (at: number): string => new Date(at + wallOffset).toISOString()
  const live = tracks.filter((track) => track.last.state !== 'ended')
  const samples = pairSamples(
    live.map((track) => track.zeros ?? { first: track.last, last: track.last }),
  )
  return {
    arrivals: unknown ? 'unknown' : 'unchanged',
    quietSince: iso(quietSince),
    samples: samples.map((scopes) => ({
      at: iso(Math.min(...scopes.map((scope) => scope.sampledAt))),
      scopes,
    })),
    text: describe(
      state,
      samples,
      live.length,
      tracks.length - live.length,
      unknown,
      iso(quietSince),
      now - quietSince,
    ),
  }
}

function pairSamples(
  runs: readonly { readonly first: LoadScope; readonly last: LoadScope }[],
): readonly (readonly LoadScope[])[] {
  if (runs.length === 0) return []
  const first = runs.map((run) => run.first)
  const last = runs.map((run) => run.last)
  return runs.every((run) => run.first === run.last) ? [last] : [first, last]
}

function describe(
  state: DrainState,
  samples: readonly (readonly LoadScope[])[],
  live: number,
  ended: number,
  unknown: boolean,
  since: string,
  quiet: number,
): string {
  const name = formatRef(state.ref)
  const processes = `${live} ${live === 1 ? 'process' : 'processes'}${ended > 0 ? ` (${ended} more ended)` : ''}`
  if (live === 0)
    return `${name}: every process that could hold work for it has ended, since ${since}`
  const spread =
    samples.length < 2
      ? 'in one sample, which the product itself confirms'
      : `in samples ${formatDuration(Math.max(...spreads(samples)))} apart`
  const arrivals = unknown
    ? 'arrivals are not counted by this product, every sample since was 0'
    : `nothing arrived for ${formatDuration(quiet)}`
  return `${name}: 0 in flight and 0 queued on ${processes} ${spread}, ${arrivals}, since ${since}`
}

function spreads(samples: readonly (readonly LoadScope[])[]): number[] {
  const [first, last] = samples
  return (last ?? []).map(
    (scope, i) => scope.sampledAt - (first?.[i]?.sampledAt ?? scope.sampledAt),
  )
}

/** What a verdict keeps of the scopes, to see after the seal that nothing came in between. */
export function fingerprint(
  state: DrainState,
): Readonly<Record<string, { readonly incarnation: string; readonly arrivals: number | null }>> {
  return Object.fromEntries(
    Object.entries(state.scopes)
      .filter(([, track]) => track.last.state !== 'ended')
      .map(([name, { last }]) => [
        name,
        { incarnation: last.incarnation, arrivals: last.arrivals ?? null },
      ]),
  )
}

/**
 * Whether one snapshot asked for after the seal still shows the verdict: in every scope the same
 * incarnation and arrivals, in force, nothing active and nothing queued.
 *
 * `early`: it does so far, but its numbers may be older than the seal, so they can't show who slipped
 * in just before it. Where counts can be stale that takes {@link Capabilities.freshness} longer.
 */
export function verdictStands(state: DrainState): 'stands' | 'early' | 'fell' {
  const { verdict } = state
  if (verdict === null) return 'fell'
  let early = false
  for (const [name, { last }] of Object.entries(state.scopes)) {
    if (last.state === 'ended') continue
    const was = verdict.scopes[name]
    const same =
      was !== undefined &&
      last.state === 'read' &&
      last.inForce &&
      last.active === 0 &&
      last.queued === 0 &&
      last.incarnation === was.incarnation &&
      (last.arrivals ?? null) === was.arrivals
    if (!same) return 'fell'
    early ||= verdict.sealedAt !== null && last.sampledAt <= verdict.sealedAt
  }
  return early ? 'early' : 'stands'
}
