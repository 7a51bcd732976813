import type { RollEvent } from '../../core/roll/events.js'
import { formatDuration } from '../../provider/duration.js'
import { formatRef } from '../../provider/member-ref.js'
import type { MemberRef } from '../../provider/contract.js'
import { printable } from '../../provider/quote.js'
import { withFlags } from './flags.js'

/** A member as a text. */
export function lineKey(ref: MemberRef): string {
  return printable(formatRef(ref))
}

/** A text about one member, where its name stands already. */
export function withoutName(text: string, name: string): string {
  if (text.startsWith(`${name}: `)) return text.slice(name.length + 2)
  return text.startsWith(`${name} `) ? text.slice(name.length + 1) : text
}

/** An event in one line; undefined for those that say nothing to a reader of a log. */
export function describeEvent(event: RollEvent): string | undefined {
  const words = eventWords(event)
  if (words === undefined) return undefined
  const who = 'ref' in event ? `${lineKey(event.ref)}: ` : ''
  return `${event.at}  ${who}${printable(withFlags(words))}`
}

/** What an event says, without its time and its member; not made printable. */
// eslint-disable-next-line complexity -- the words of each event
export function eventWords(event: RollEvent): string | undefined {
  switch (event.type) {
    case 'phase':
      return `${event.from} -> ${event.to}`
    case 'load': {
      const [first] = event.why
      return first === undefined
        ? `${event.active} in flight`
        : withoutName(first.text, lineKey(event.ref))
    }
    case 'idle':
      return `idle: ${withoutName(event.proof.text, lineKey(event.ref))}`
    case 'in-force':
      return 'the hold is in force in every process'
    case 'idle-lost':
      return 'not idle any more: work was seen'
    case 'removed':
      return 'removed from its pool'
    case 'overruled':
      return `another client set ${event.found}, expected ${event.expected}${event.reset ? '; it is set again' : ''}`
    case 'terminated':
      return `${event.count} cut`
    case 'fault':
      return `fault: ${event.error.message}`
    case 'act':
      return event.attempt === 1 ? 'COMMAND runs' : `COMMAND runs, call ${event.attempt}`
    case 'ready':
      return 'made ready'
    case 'healthy':
      return 'done'
    case 'postponed':
      return 'busy for too long: put back, tried once more after all others'
    case 'failed':
      return `failed: ${event.error.message}`
    case 'batch':
      return `next: ${event.refs.map(lineKey).join(', ')}`
    case 'end':
    case 'roll-end':
      return undefined
    default:
      return event satisfies never
  }
}

/** A time left, for a person; empty where there is no end. */
export function timeLeft(deadline: number | null, now: number): string {
  return deadline === null ? '' : `${formatDuration(Math.max(0, deadline - now))} left`
}
