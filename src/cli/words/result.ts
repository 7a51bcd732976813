import { formatDuration } from '../../provider/duration.js'
import { printable } from '../../provider/quote.js'
import type { PresentReading, Reading } from '../../provider/contract.js'
import type { DrainReport, MemberReport, RollReport } from '../../provider/report.js'
import { describeEnd } from '../child.js'
import type { Result } from '../result.js'
import { elsewhereWords } from './elsewhere.js'
import { lineKey, withoutName } from './event.js'
import { withFlags } from './flags.js'
import { table } from './table.js'

/** A result for a person: what came of it, and what went wrong. */
export interface Words {
  readonly text: string
  readonly error: string
}

/** A result in words. Text from outside is made printable. */
export function describeResult(result: Result): Words {
  const lines = linesOf(result).filter((line) => line !== '')
  const error =
    result.error === undefined ? '' : `drainable: ${printable(withFlags(result.error.message))}`
  return { text: lines.join('\n'), error }
}

function linesOf(result: Result): readonly string[] {
  switch (result.verb) {
    case 'status':
      return result.members === undefined ? [] : [describeMembers(result.members)]
    case 'plan':
      return [everyLine(withFlags(result.plan?.text ?? ''))]
    case 'ready':
      return (result.report?.members ?? []).map(
        ({ ref, wasAdmin, health }) =>
          `${lineKey(ref)}: ready, health ${health}${wasAdmin === 'ready' ? ', as it was before' : `, was in ${wasAdmin}`}`,
      )
    case 'orphans':
      return orphanLines(result)
    case 'watch':
      return (result.report?.members ?? []).flatMap(watchedLines)
    default:
      return [...drainLines(result), ...rollLines(result), ticketLine(result)]
  }
}

function orphanLines({
  orphans = [],
  elsewhere = [],
  error,
}: Extract<Result, { readonly verb: 'orphans' }>): readonly string[] {
  if (orphans.length + elsewhere.length === 0)
    return error === undefined ? ['no drain is left over'] : []
  return [
    ...orphans.flatMap(({ ticket, kind, startedAt, owner, members }) => [
      `${ticket}  ${kind} begun ${startedAt}, ${printable(owner.text)}`,
      ...members.map(
        ({ ref, own, owes, phase }) =>
          `  ${lineKey(ref)}: ${own ?? 'gone'}, ${phase}${owes ? ', to be undone' : ''}`,
      ),
    ]),
    ...elsewhere.map((one) => printable(elsewhereWords(one))),
  ]
}

/** A text of several lines, each of them printable. */
function everyLine(text = ''): string {
  return text.split('\n').map(printable).join('\n')
}

function ticketLine(result: Result): string {
  if (!('ticket' in result)) return ''
  return `ticket ${result.ticket}: 'drainable restore BALANCER' undoes it, 'drainable resume BALANCER' goes on with it`
}

function drainLines(result: Result): readonly string[] {
  const lines = 'report' in result && result.verb !== 'ready' ? reportLines(result.report) : []
  if (!('command' in result)) return lines
  const { command, ready, leftAsFound = [] } = result
  return [
    ...lines,
    `COMMAND ${describeEnd(command)}`,
    ...(ready?.members ?? []).map(({ ref, health }) => `${lineKey(ref)}: ready, health ${health}`),
    ...leftAsFound.map((name) => `${name}: was out before, left as it was found`),
  ]
}

function reportLines(report: DrainReport | undefined): readonly string[] {
  return (report?.members ?? []).flatMap(memberLines)
}

/** How a drain that came to no end left its member. */
function leftAs({ outcome, held }: MemberReport): string {
  if (outcome !== 'timeout' && outcome !== 'aborted') return ''
  return held ? ', left drained' : ', as it was before'
}

function memberLines(member: MemberReport): readonly string[] {
  const { ref, outcome, verifiedIdle, proof, why, elapsed, error } = member
  const isIdle = outcome === 'idle' || outcome === 'removed'
  const verified = isIdle && !verifiedIdle ? ', not verified' : ''
  const left = leftAs(member)
  const reasons = why.map(({ text, hint }) => `  ${text}${hint === undefined ? '' : `; ${hint}`}`)
  // The reason of a refusal often holds the words of its error.
  const isSaid = error === undefined || why.some(({ text }) => text.includes(error.message))
  return [
    outcome === 'restored'
      ? `${lineKey(ref)}: restored, ${formatDuration(elapsed)} after the drain began`
      : `${lineKey(ref)}: ${outcome}${verified} after ${formatDuration(elapsed)}${left}`,
    ...(proof === undefined ? [] : [`  ${withoutName(proof.text, lineKey(ref))}`]),
    ...reasons,
    ...(isSaid ? [] : [`  ${error.message}`]),
  ].map((line) => everyLine(withFlags(line)))
}

/** A watch ends whenever its user likes: that is no end of the drain it looked at. */
function watchedLines(member: MemberReport): readonly string[] {
  if (member.outcome !== 'aborted') return memberLines(member)
  const { ref, phase, why, elapsed } = member
  return [
    `${lineKey(ref)}: ${phase}, watched for ${formatDuration(elapsed)}`,
    ...why.map(({ text }) => `  ${text}`),
  ].map(everyLine)
}

const ROLL_COLUMNS = [
  'server',
  'members',
  'outcome',
  'calls',
  'drain',
  'command',
  'healthy',
  'error',
] as const

function took(ms: number | undefined): string {
  return ms === undefined ? '' : formatDuration(ms)
}

function rollLines(result: Result): readonly string[] {
  if (!('roll' in result)) return []
  const { roll } = result
  // It did not begin: its error says it all.
  if (roll.servers.length === 0 && roll.error !== undefined) return []
  const rows = roll.servers.map(({ address, refs, outcome, attempts, times, error }) => [
    address ?? '',
    refs.map(lineKey).join(', '),
    outcome,
    attempts === 0 ? '' : `${attempts}`,
    took(times.drain),
    took(times.act),
    took(times.healthy),
    withFlags(error?.message ?? ''),
  ])
  return [
    rows.length === 0 ? '' : table(ROLL_COLUMNS, rows),
    ...left('left drained', roll.leftDrained),
    ...left('left as found', roll.leftAsFound),
    `${roll.outcome} after ${formatDuration(roll.elapsed)}`,
  ]
}

function left(words: string, refs: RollReport['leftDrained']): readonly string[] {
  return refs.length === 0 ? [] : [`${words}: ${refs.map(lineKey).join(', ')}`]
}

/** The members of a status, one a line. */
export function describeMembers(members: readonly Reading[]): string {
  const present = members.filter((reading): reading is PresentReading => reading.present)
  const rows = present.map((reading) => [
    lineKey(reading.ref),
    placeOf(reading),
    reading.own === 'ready' && reading.inherited !== undefined && reading.inherited !== 'ready'
      ? `${reading.inherited} (inherited)`
      : reading.own,
    reading.health,
    reading.serves ? 'yes' : 'no',
    count(reading, 'active'),
    count(reading, 'queued'),
  ])
  return table(['member', 'address', 'state', 'health', 'serves', 'active', 'queued'], rows)
}

function placeOf({ address, port }: PresentReading): string {
  if (address === undefined) return ''
  const host = address.includes(':') ? `[${address}]` : address
  return port === undefined ? address : `${host}:${port}`
}

/** A sum over all processes; with a plus where one of them could not be read. */
function count({ scopes }: PresentReading, key: 'active' | 'queued'): string {
  const read = scopes.filter(({ state }) => state === 'read')
  const sum = read.reduce((all, scope) => all + scope[key], 0)
  return `${sum}${scopes.some(({ state }) => state === 'unread') ? '+?' : ''}`
}
