import { atLeast, formatRef } from '../../../provider/member-ref.js'
import { DrainableError, type ErrorCode } from '../../../provider/error.js'
import { formatDuration } from '../../../provider/duration.js'
import type { MemberRef } from '../../../provider/contract.js'
import { printable } from '../../../provider/quote.js'
import type { DrainReport, MemberReport, Outcome, Why } from '../../../provider/report.js'
import { mayOwe } from '../../tickets/member.js'
import type { Ticket } from '../../tickets/ticket.js'
import { owes, type Ledger } from '../record.js'
import { ownOf, readsMember, type ClaimedMember } from '../claimed.js'
import { explain } from './why.js'

/** From best to worst: a drain of several members ends as its worst one. */
const WORSE: readonly Outcome[] = [
  'restored',
  'idle',
  'removed',
  'terminated',
  'proceeded',
  'gone',
  'timeout',
  'unreachable',
  'overruled',
  'refused',
  'aborted',
]

/** The worst of several outcomes. */
export function worst(outcomes: readonly Outcome[]): Outcome {
  return outcomes.reduce(
    (a, b) => (WORSE.indexOf(b) > WORSE.indexOf(a) ? b : a),
    outcomes[0] ?? 'restored',
  )
}

/**
 * The report of one member.
 *
 * @param wallOffset - epoch milliseconds minus the balancer's clock
 */
export function reportMember(
  claimed: ClaimedMember,
  now: number,
  wallOffset: number,
): MemberReport {
  const { ref, claim, facts, ledger } = claimed
  const { proof, ending, phase, startedAt } = claim
  const { ended } = ending
  const { found } = ledger
  const isVerified = proof.proof !== null && proof.lost.length === 0 && proof.unverified === null
  return {
    ref,
    outcome: ended?.outcome ?? (phase === 'idle' ? 'idle' : 'aborted'),
    phase,
    wasAdmin: foundAs(found),
    held: isHeld(claimed),
    verifiedIdle: isVerified,
    sealed: proof.sealed,
    ...(proof.proof === null ? {} : { proof: proof.proof }),
    lost: proof.lost,
    terminated: ending.terminated,
    ...(ending.terminatedAtMost ? { terminatedAtMost: true as const } : {}),
    elapsed: Math.round((ended?.at ?? now) - startedAt),
    why: explain(claimed, now, wallOffset),
    ...(facts.last === null ? {} : { lastReading: facts.last.reading }),
    ...(ended?.error == null ? {} : { error: ended.error }),
  }
}

/**
 * Whether a change of ours is on a member, or may be: one that a look since the last change has shown as it was found, or
 * lower, has none.
 */
function isHeld(claimed: ClaimedMember): boolean {
  const { claim, facts, ledger } = claimed
  if (claim.goal.kind === 'watch') return false
  if (claim.phase === 'removed' || claim.ending.ended?.outcome === 'restored') return false
  if (ledger.pending !== null || ledger.late.length > 0) return true
  const own = ownOf(claimed)
  const { found } = ledger
  const before = foundAs(found)
  const isSeen =
    facts.last !== null && facts.last.askedAt > ledger.answeredAt && readsMember(claimed)
  const isBack = isSeen && own !== 'unknown' && atLeast(before, own)
  return owes(ledger) && !isBack
}

/**
 * The reports of a ticket's members if the run could not begin: nothing is known about them, so each has the outcome
 * of the run.
 */
export function unreached(
  { members }: Ticket,
  { outcome, elapsed, error }: DrainReport,
): readonly MemberReport[] {
  return members.map((member) => ({
    ...unread(member.ref, outcome, elapsed, error),
    phase: 'draining',
    wasAdmin: foundAs(member.found),
    held: mayOwe(member),
  }))
}

/** The state that a member was found in; `ready` if that is not known. */
export function foundAs(
  found: Pick<NonNullable<Ledger['found']>, 'own'> | null | undefined,
): MemberReport['wasAdmin'] {
  const own = found?.own ?? 'unknown'
  return own === 'unknown' ? 'ready' : own
}

/** The report of a member whose balancer was never read: nothing was changed. */
export function unread(
  ref: MemberRef,
  outcome: Outcome,
  elapsed: number,
  error?: DrainableError,
): MemberReport {
  return {
    ref,
    outcome,
    phase: 'active',
    wasAdmin: 'ready',
    held: false,
    verifiedIdle: false,
    sealed: false,
    lost: [],
    terminated: 0,
    elapsed,
    why: error === undefined ? [] : [{ code: 'unreadable', ref, text: printable(error.message) }],
    ...(error === undefined ? {} : { error }),
  }
}

/** The report of several members: the worst of their outcomes. */
export function reportAll(members: readonly MemberReport[], elapsed: number): DrainReport {
  return { outcome: worst(members.map((member) => member.outcome)), members, elapsed }
}

/** The same members, all given up. */
export function asAborted(report: DrainReport): DrainReport {
  const members = report.members.map((member) => ({ ...member, outcome: 'aborted' as const }))
  return { ...report, outcome: 'aborted', members }
}

/** The report of a member of an undone drain: aborted, with the error of the undo. */
export function takenBack(member: MemberReport, before: MemberReport | undefined): MemberReport {
  const was = before ?? member
  const error = member.error ?? was.error
  const { held } = member
  return { ...was, outcome: 'aborted', held, ...(error === undefined ? {} : { error }) }
}

/** The report with what is wrong with its ticket, if anything is: nobody would look for that elsewhere. */
export function withTicket(report: DrainReport, why: Omit<Why, 'ref'> | undefined): DrainReport {
  const [first, ...others] = report.members
  if (why === undefined || first === undefined) return report
  const told = { ...first, why: [...first.why, { ...why, ref: first.ref }] }
  return { ...report, members: [told, ...others] }
}

const CODE: Readonly<Record<Outcome, ErrorCode | null>> = {
  idle: null,
  removed: null,
  terminated: null,
  proceeded: null,
  aborted: null,
  restored: null,
  timeout: 'DRAIN_TIMEOUT',
  overruled: 'DRAIN_OVERRULED',
  refused: 'REJECTED',
  unreachable: 'UNREACHABLE',
  gone: 'MEMBER_GONE',
}

/** The error to throw for a failed drain; undefined if it succeeded, or was aborted. */
export function toError(report: DrainReport): DrainableError | undefined {
  const code = CODE[report.outcome]
  if (code === null) return undefined
  const member = report.members.find((m) => m.outcome === report.outcome)
  const original = member?.error ?? report.error
  const data = {
    report,
    ...(member === undefined ? {} : { ref: member.ref }),
    ...(original === undefined ? {} : { cause: original, retryable: original.retryable }),
  }
  // A drain that ran out of time is a DRAIN_TIMEOUT; its message and cause include the last refusal.
  const held = heldOn(report.members)
  if (original !== undefined && code !== 'DRAIN_TIMEOUT')
    return new DrainableError(original.code, `${original.message}${held}`, {
      ...data,
      // It is that error, with the report: told with the same words as its own cause, it would be read twice.
      ...(held === '' ? { cause: original.cause } : {}),
    })
  return new DrainableError(code, `${describe(report, member)}${held}`, data)
}

/** What is held on each balancer of a combined provider, for the end of a sentence; empty for any other. */
function heldOn(members: readonly MemberReport[]): string {
  const balancers = Map.groupBy(members, ({ ref }) => ref.balancer)
  if ([...balancers.keys()].every((key) => key === undefined)) return ''
  const held = members.filter((member) => member.held).map(nameHeld)
  const free = [...balancers].flatMap(([key, own]) =>
    key === undefined || own.some((member) => member.held) ? [] : [printable(key)],
  )
  return [
    ...(held.length === 0 ? [] : [`; held: ${listed(held)}`]),
    ...(free.length === 0 ? [] : [`; nothing is held on ${listed(free)}`]),
  ].join('')
}

/** Where it is held, the state that it was found in was read before that. */
function nameHeld({ ref, lastReading, wasAdmin }: MemberReport): string {
  const own = lastReading?.present === true ? lastReading.own : 'unknown'
  const isKnown = own !== 'unknown' && !atLeast(wasAdmin, own)
  return `${formatRef(ref)} ${isKnown ? `in ${own}` : '(state not known)'}`
}

/** How many members or balancers a sentence names. */
const MOST_NAMES = 8

function listed(names: readonly string[]): string {
  const more = names.length - MOST_NAMES
  return `${names.slice(0, MOST_NAMES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function describe(report: DrainReport, member: MemberReport | undefined): string {
  const name = member === undefined ? 'the drain' : formatRef(member.ref)
  const why = member?.why[0]
  const left = report.members.filter((m) => m.outcome === report.outcome).length
  const others = left > 1 ? ` (and ${left - 1} more)` : ''
  const reason =
    why === undefined ? '' : `: ${why.text}${why.hint === undefined ? '' : `; ${why.hint}`}`
  const hints = hintsOf(member).filter((hint) => hint !== why?.text)
  const more = hints.slice(0, MOST_HINTS).map((hint) => `; ${hint}`)
  return `${name}${others} was not idle after ${formatDuration(report.elapsed)}${reason}${more.join('')}`
}

/** How many hints of the product the message of a DRAIN_TIMEOUT includes. */
const MOST_HINTS = 2

function hintsOf(member: MemberReport | undefined): readonly string[] {
  const reading = member?.lastReading
  return reading?.present === true ? (reading.hints ?? []) : []
}
