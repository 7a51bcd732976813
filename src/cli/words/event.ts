import type { RollEvent } from '../../fleet/roll/events.js'
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

type Words = {
  readonly [T in RollEvent['type']]: (
    event: Extract<RollEvent, { readonly type: T }>,
  ) => string | undefined
}

const WORDS: Words = {
  phase: ({ from, to }) => `${from} -> ${to}`,
  load: ({ why: [first], active, ref }) =>
    first === undefined ? `${active} in flight` : withoutName(first.text, lineKey(ref)),
  idle: ({ proof, ref }) => `idle: ${withoutName(proof.text, lineKey(ref))}`,
  'in-force': () => 'the hold is in force in every process',
  'idle-lost': () => 'not idle any more: work was seen',
  removed: () => 'removed from its pool',
  overruled: ({ found, expected, reset }) =>
    `another client set ${found}, expected ${expected}${reset ? '; it is set again' : ''}`,
  terminated: ({ count }) => `${count} cut`,
  fault: ({ error }) => `fault: ${error.message}`,
  act: ({ attempt }) => (attempt === 1 ? 'COMMAND runs' : `COMMAND runs, call ${attempt}`),
  ready: () => 'made ready',
  healthy: () => 'done',
  postponed: () => 'busy for too long: put back, tried once more after all others',
  failed: ({ error }) => `failed: ${error.message}`,
  batch: ({ refs }) => `next: ${refs.map(lineKey).join(', ')}`,
  end: () => undefined,
  'roll-end': () => undefined,
}

/** What an event says, without its time and its member; not made printable. */
export function eventWords(event: RollEvent): string | undefined {
  return (WORDS[event.type] as (event: RollEvent) => string | undefined)(event)
}

/** A time left, for a person; empty where there is no end. */
export function timeLeft(deadline: number | null, now: number): string {
  return deadline === null ? '' : `${formatDuration(Math.max(0, deadline - now))} left`
}
