/** What a user or a balancer sees, as lines: never a field of an inside state, no time, no count of looks. */
import {
  isDrainableError,
  type Change,
  type DrainEvent,
  type DrainReport,
  type LoadEvent,
  type MemberReport,
  type Outcome,
  type ReadyReport,
  type RollEvent,
  type RollReport,
} from 'drainable'
import { nameOf } from './names.js'

/** One change, as the balancer gets it. */
export function sayChange(change: Change): string {
  const name = nameOf(change.ref)
  switch (change.kind) {
    case 'hold':
      return `${name} hold ${change.to}`
    case 'restore':
      return `${name} open ${change.expect} to ${change.to}`
    case 'terminate':
    case 'remove':
      return `${name} ${change.kind}`
    default:
      return `${name} add ${change.address}:${change.port}`
  }
}

/** The code of an error of ours; anything else by its text. */
export function sayError(error: unknown): string {
  if (isDrainableError(error)) return error.code
  return error instanceof Error ? error.message : String(error)
}

/** An event; null for those that a history does not print. */
export function sayEvent(event: DrainEvent): readonly string[] {
  switch (event.type) {
    case 'load':
      return []
    case 'phase':
      // Each of these two has an event of its own.
      return event.to === 'idle' || event.to === 'removed'
        ? []
        : [`${nameOf(event.ref)} ${event.to}`]
    case 'overruled': {
      const { ref, expected, found, reset } = event
      const words = reset ? ', set again' : ''
      return [`${nameOf(ref)} overruled, wished ${expected}, found ${found}${words}`]
    }
    case 'terminated':
      return [`${nameOf(event.ref)} cut ${event.count}`]
    case 'fault':
      return [`${nameOf(event.ref)} fault ${sayError(event.error)}`]
    case 'end':
      return sayReport('end', event.report)
    default:
      return [`${nameOf(event.ref)} ${event.type}`]
  }
}

/** The load of a member, as its event says it. */
export function sayLoad({ ref, active, queued, complete, own, health, oldest }: LoadEvent): string {
  const age = oldest === null ? '' : `, oldest ${Math.round(oldest / 1_000)} s`
  const part = complete ? '' : ' at least'
  return `${nameOf(ref)} load${part} ${active}+${queued}, ${own ?? 'not read'}, ${health ?? 'not read'}${age}`
}

/** One line for each member, and what is about no single one. */
export function sayReport(word: string, { members, error, outcome }: DrainReport): string[] {
  const whole = error === undefined ? `${word} ${outcome}` : `${word} ${outcome} ${sayError(error)}`
  const each = members.map((member) => `${word} ${sayMember(member)}`)
  return error === undefined && members.length > 0 ? each : [...each, whole]
}

const WITH_PROOF: readonly Outcome[] = ['idle', 'removed', 'terminated', 'proceeded']

function sayMember(member: MemberReport): string {
  const { ref, outcome, verifiedIdle, sealed, terminated, terminatedAtMost, lost, why } = member
  const words = [nameOf(ref), outcome]
  if (verifiedIdle) words.push('verified')
  else if (WITH_PROOF.includes(outcome)) words.push('not-verified')
  if (sealed) words.push('sealed')
  if (terminated > 0) words.push(`cut-${terminatedAtMost === true ? 'at-most-' : ''}${terminated}`)
  if (lost.length > 0) words.push(`lost-${lost.reduce((sum, { active }) => sum + active, 0)}`)
  if (member.error !== undefined) words.push(sayError(member.error))
  const reasons = [...new Set(why.map(({ code }) => code))]
  return reasons.length === 0 ? words.join(' ') : `${words.join(' ')} (${reasons.join(', ')})`
}

/** What `ready()` found. */
export function sayReady({ members }: ReadyReport): readonly string[] {
  return members.map(
    ({ ref, wasAdmin, health }) => `opened ${nameOf(ref)} was ${wasAdmin}, ${health}`,
  )
}

/** An event of a roll. */
export function sayRollEvent(event: RollEvent): readonly string[] {
  switch (event.type) {
    case 'batch':
      return [`begins ${event.refs.map(nameOf).join(', ')}`]
    case 'act':
      return [`act ${nameOf(event.ref)}, attempt ${event.attempt}`]
    case 'failed':
      return [`${nameOf(event.ref)} failed ${sayError(event.error)}`]
    case 'roll-end':
      return sayRollReport(event.report)
    case 'phase':
    case 'in-force':
      return []
    case 'ready':
    case 'healthy':
    case 'postponed':
      return [`${nameOf(event.ref)} ${event.type}`]
    default:
      return sayEvent(event)
  }
}

function sayRollReport({ outcome, servers, leftDrained, error }: RollReport): readonly string[] {
  const why = error === undefined ? '' : ` ${sayError(error)}`
  const left =
    leftDrained.length === 0 ? '' : `, left drained ${leftDrained.map(nameOf).join(', ')}`
  return [
    `roll ${outcome}${why}${left}`,
    ...servers.map(({ refs, outcome: how, error: of }) =>
      [
        `server ${refs.map(nameOf).join(', ')} ${how}`,
        ...(of === undefined ? [] : [sayError(of)]),
      ].join(' '),
    ),
  ]
}
