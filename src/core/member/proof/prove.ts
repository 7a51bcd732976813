import { atLeast, formatRef, isInForce } from '../../../provider/member-ref.js'
import type { LoadScope, PresentReading } from '../../../provider/contract.js'
import { formatDuration } from '../../../provider/duration.js'
import type { Proof } from '../../../provider/report.js'
import { judgeScope, type IdleRule } from './scopes.js'
import { type Claim, type ScopeMark } from '../record.js'
import { neededState, type ClaimedMember } from '../claimed.js'

/** The idle rule for this claim; null while its hold is not in effect. */
export function idleRule(claimed: ClaimedMember): IdleRule | null {
  const { claim, facts } = claimed
  const { effectiveSince } = claim.proof
  if (effectiveSince === null) return null
  const { settle, capabilities } = claim.policy
  const { blind, freshness, counts } = capabilities
  const reading = facts.last?.reading
  const closed = reading?.present === true && isClosed(claim, reading)
  const awaitsRelease = !closed && !isLastLook(claimed)
  const wish = neededState(claim)
  return { settle, blind, freshness, counts, effectiveSince, wish, awaitsRelease }
}

/**
 * Whether the newest look is the one that the outcome rests on, past the deadline. If the caller allowed a cut, the
 * cut, or its refusal, comes before it.
 */
export function isLastLook({ claim, facts: { last }, ledger }: ClaimedMember): boolean {
  const { deadline, policy, ending } = claim
  if (deadline === null || last === null || last.askedAt < deadline) return false
  if (policy.onTimeout !== 'terminate') return true
  const { terminateUntil } = ending
  return terminateUntil !== null && (last.at >= terminateUntil || ledger.refusal !== null)
}

/**
 * Whether no client can reach the member any more, persistent or not: an old process that stayed at drain lets
 * persistent clients in, whoever set the member to maint since. The provider's `sealed` takes precedence.
 */
export function isClosed(
  { proof }: Pick<Claim, 'proof'>,
  { own, sealed }: PresentReading,
): boolean {
  if (sealed !== undefined) return sealed
  const read = [...proof.scopes.values()].filter(({ last }) => last.state === 'read')
  return own === 'maint' && read.every(({ last }) => isInForce(last, 'maint'))
}

/**
 * Whether some process counts work but no arrivals, and has not said that the member is released: between two zeros
 * a client can have come and gone, unless the member was closed.
 */
export function missesArrivals({ proof }: Pick<Claim, 'proof'>): boolean {
  return [...proof.scopes.values()].some(
    ({ last }) => last.state === 'read' && last.arrivals === undefined && last.released !== true,
  )
}

/** Whether the member's own state is as the claim wants it. A member that vanished takes no work either. */
export function inWishedState({ facts, claim: { goal, wish } }: ClaimedMember): boolean {
  const reading = facts.last?.reading
  if (reading === undefined || goal.kind === 'open') return false
  if (!reading.present) return true
  if (goal.kind === 'watch')
    return atLeast(reading.own, 'drain') || atLeast(reading.inherited ?? 'ready', 'drain')
  return wish !== 'none' && atLeast(reading.own, wish)
}

/** Whether every process that can hold work has taken the wanted state, or lets no work through. */
export function allInForce(claim: Claim): boolean {
  const tracks = [...claim.proof.scopes.values()]
  const needed = neededState(claim)
  return (
    tracks.length > 0 &&
    tracks.every(({ last }) => last.state === 'read' && isInForce(last, needed))
  )
}

/**
 * Proves by the four rules that a member is idle now; null while one of them is not met.
 *
 * @param wallOffset - epoch milliseconds minus the balancer's clock
 */
export function proveIdle(claimed: ClaimedMember, now: number, wallOffset: number): Proof | null {
  const { claim, facts, elsewhere } = claimed
  const rule = idleRule(claimed)
  if (rule === null || facts.unread !== null || !inWishedState(claimed)) return null
  const tracks = [...claim.proof.scopes.values()]
  if (tracks.length === 0 && claim.proof.ended === 0) return null
  if (elsewhere.length > 0) return null
  let quietSince = rule.effectiveSince
  let unknown = false
  for (const track of tracks) {
    const verdict = judgeScope(track, rule, now)
    if (!verdict.idle) return null
    quietSince = Math.max(quietSince, verdict.quietSince)
    unknown ||= verdict.arrivals === 'unknown'
  }
  const iso = (at: number): string => new Date(at + wallOffset).toISOString()
  const samples = pairSamples(
    tracks.map((track) => track.zeros ?? { first: track.last, last: track.last }),
  )
  return {
    arrivals: unknown ? 'unknown' : 'unchanged',
    quietSince: iso(quietSince),
    samples: samples.map((scopes) => ({
      at: iso(Math.min(...scopes.map((scope) => scope.sampledAt))),
      scopes,
    })),
    text: describe(claimed, samples, {
      live: tracks.length,
      unknown,
      since: iso(quietSince),
      quiet: now - quietSince,
    }),
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
  { ref, claim }: ClaimedMember,
  samples: readonly (readonly LoadScope[])[],
  is: {
    readonly live: number
    readonly unknown: boolean
    readonly since: string
    readonly quiet: number
  },
): string {
  const name = formatRef(ref)
  const { ended } = claim.proof
  if (is.live === 0)
    return `${name}: every process that could hold work for it has ended, since ${is.since}`
  const processes = `${is.live} ${is.live === 1 ? 'process' : 'processes'}${ended > 0 ? ` (${ended} more ended)` : ''}`
  const spread =
    samples.length < 2
      ? 'in one sample, which the product itself confirms'
      : `in samples ${formatDuration(Math.max(...spreads(samples)))} apart`
  const arrivals = is.unknown
    ? 'this product does not count arrivals, every sample since was 0'
    : `nothing arrived for ${formatDuration(is.quiet)}`
  return `${name}: 0 in flight and 0 queued on ${processes} ${spread}, ${arrivals}, since ${is.since}`
}

function spreads(samples: readonly (readonly LoadScope[])[]): number[] {
  const [first, last] = samples
  return (last ?? []).map(
    (scope, i) => scope.sampledAt - (first?.[i]?.sampledAt ?? scope.sampledAt),
  )
}

/** Marks of the processes, to check later that nothing came since. */
export function marksOf({ proof }: Pick<Claim, 'proof'>): ReadonlyMap<string, ScopeMark> {
  return new Map(
    [...proof.scopes].map(([name, { last }]) => [
      name,
      {
        incarnation: last.incarnation,
        arrivals: last.arrivals ?? null,
        ...(last.countersFrom === undefined ? {} : { countersFrom: last.countersFrom }),
      },
    ]),
  )
}

/** Whether a product that does not count work no longer reports the member released: there is no other sign of work. */
function isReleaseOver(last: LoadScope, { policy }: Claim): boolean {
  return policy.capabilities.counts === 'none' && last.released !== true
}

/** Whether a process is still as in its mark: the same one, nothing arrived, nothing in flight. */
function asMarked(last: LoadScope, mark: ScopeMark | undefined, claim: Claim): boolean {
  return (
    last.active === 0 &&
    last.queued === 0 &&
    !isReleaseOver(last, claim) &&
    mark?.incarnation === last.incarnation &&
    mark.arrivals === (last.arrivals ?? null)
  )
}

/**
 * Whether one look asked for after the seal confirms the verdict: in every process the same incarnation and arrivals,
 * in force, nothing active and nothing queued.
 *
 * `early`: it does so far, but its numbers can be older than the seal, so they can't show work that arrived just
 * before it. If counts can be stale, that takes the product's freshness longer.
 */
export function verdictStands(claim: Claim): 'stands' | 'early' | 'fell' {
  const { verdict, scopes } = claim.proof
  if (verdict === null) return 'fell'
  let early = false
  for (const [name, { last }] of scopes) {
    const same =
      last.state === 'read' &&
      isInForce(last, neededState(claim)) &&
      asMarked(last, verdict.scopes.get(name), claim)
    if (!same) return 'fell'
    early ||= verdict.sealedAt !== null && last.sampledAt <= verdict.sealedAt
  }
  return early ? 'early' : 'stands'
}

/**
 * Whether no reading contradicts the reported idle. Once the whole call has its outcome, a process that can't be read
 * for a moment is no contradiction; before that, it must be read.
 */
export function stillIdle(claim: Claim): boolean {
  const { verdict, scopes } = claim.proof
  const lenient = claim.ending.settled || claim.goal.kind === 'watch'
  return [...scopes].every(([name, { last }]) =>
    last.state === 'read' ? asMarked(last, verdict?.scopes.get(name), claim) : lenient,
  )
}

/**
 * Whether counters show work on a member reported idle: something in flight or queued, or changed arrivals. If
 * counters began anew, any arrival came afterwards; a process that joined beside the old ones brings its earlier
 * count. A process that does not count arrivals shows none.
 *
 * @param marks - the processes from when it was idle
 */
export function workSeen(
  claim: Claim,
  marks: ReadonlyMap<string, ScopeMark> | null = claim.ending.marks,
): boolean {
  if (marks === null) return false
  const { scopes } = claim.proof
  const replaced = [...marks].some(([name, mark]) => {
    const now = scopes.get(name)?.last
    return now === undefined || now.old === true || now.incarnation !== mark.incarnation
  })
  const known = new Set([...marks.values()].map((mark) => mark.incarnation))
  return [...scopes].some(([name, { last }]) => {
    if (last.state !== 'read') return false
    if (last.active > 0 || last.queued > 0 || isReleaseOver(last, claim)) return true
    const { arrivals } = last
    if (arrivals === undefined) return false
    const mark = marks.get(name)
    if (mark !== undefined) return arrivedSince(mark, { ...last, arrivals })
    return replaced && !known.has(last.incarnation) && arrivals > 0
  })
}

/** Whether a process's counter shows arrivals since the mark. */
function arrivedSince(
  mark: ScopeMark,
  { incarnation, arrivals, countersFrom }: LoadScope & { readonly arrivals: number },
): boolean {
  const beganAnew =
    mark.countersFrom !== undefined &&
    countersFrom !== undefined &&
    mark.countersFrom !== countersFrom
  if (beganAnew) return arrivals > 0
  // Another incarnation, whose counters may have continued or not: a zero shows neither.
  return (mark.arrivals ?? 0) !== arrivals && (arrivals > 0 || mark.incarnation === incarnation)
}

/** A process whose count of arrivals fell while it lived: another client has cleared its counters. */
export function clearedCounters({ ending: { marks }, proof }: Claim): string | undefined {
  for (const [name, { last }] of proof.scopes) {
    const mark = marks?.get(name)
    if (mark !== undefined && hasFallen(mark, last)) return name
  }
  return undefined
}

function hasFallen({ arrivals: before, incarnation }: ScopeMark, now: LoadScope): boolean {
  const { active, queued, arrivals } = now
  if (before === null || arrivals === undefined || now.incarnation !== incarnation) return false
  return active + queued === 0 && arrivals < before
}
