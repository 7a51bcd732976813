import { formatAddress } from './address.js'
import type { Change, MemberRef } from './contract.js'
import { DrainableError } from './error.js'
import { formatRef } from './member-ref.js'
import { readGiven } from './options.js'
import { printable } from './quote.js'

/**
 * The state that a controller wants one member to have. `toDesired` of `drainable/endpoints` makes it from decisions;
 * `planChanges` and a reconciler compare it with the balancer.
 */
export interface DesiredMember {
  /** The pool it belongs to. */
  readonly pool: string
  /**
   * The member's name. With an address, the address decides which member is meant, and the name is used only to add
   * one: under another name that begins the same, if a member at another address has it. Without an address, the name
   * decides. Of several entries that mean one member, the state that wants most of it counts: `serve` before `drain`
   * before `absent`. `set()` of a reconciler refuses that for entries by name alone.
   */
  readonly member?: string
  /** Its address; IPv6 in any spelling. Not its name: no name is resolved, and a reconciler refuses it. */
  readonly address?: string
  /** Its port. Without one, every port of the address is meant. */
  readonly port?: number
  /** `serve`: it gets work. `drain`: it gets no new work. `absent`: it is drained, and taken out once it is idle. */
  readonly state: 'serve' | 'drain' | 'absent'
  /** The weight to add it with. Default: the balancer's own. */
  readonly weight?: number
  /** The reason, for people. */
  readonly reason?: string
  /** `false`: it does not answer any more, so a drain holds it like a member that is gone. Default: true. */
  readonly serving?: boolean
  /** `skip`: it can serve if the balancer has it, but is never added. Default: `add` for `serve`. */
  readonly ifAbsent?: 'add' | 'skip'
}

/** One planned change and its reason. */
export interface PlannedChange {
  readonly change: Change
  readonly reason: string
  /**
   * How many other members of the pool must still take new work when the change is made; at most 1 for a member that
   * is gone, because it has no capacity to lose. Absent for a change that takes no capacity away.
   */
  readonly keepReady?: number
}

/** A member that is left unchanged although it is not as wanted. */
export interface HeldBack {
  readonly ref: MemberRef
  readonly reason: string
  /** `true`: it belongs to another client, but is as wanted. */
  readonly asWished?: true
}

/** The changes to make, and the members held back for now. `formatPlan` prints it. */
export interface Plan {
  /**
   * The changes to make. A hold is only the beginning of a drain: `carryOut` of `drainable` makes the complete drain.
   */
  readonly changes: readonly Change[]
  /** The same changes with their reasons. */
  readonly steps: readonly PlannedChange[]
  readonly held: readonly HeldBack[]
  /** What people should also know before they carry it out. */
  readonly notes?: readonly string[]
}

/**
 * Formats a plan for people: one line per change and per member held back, with its reason, and per note. Control
 * characters from outside are removed, so the text is safe for a terminal.
 *
 * @example
 * ```ts
 * import { formatPlan, planChanges } from 'drainable/endpoints'
 *
 * const ours = { pools: ['web'], owns: () => true }
 * const plan = planChanges([], { readings: [], pools: [] }, ours)
 * formatPlan(plan) // 'nothing to change'
 * ```
 */
export function formatPlan(plan: Plan): string {
  return readGiven('formatPlan(): plan', () => format(plan))
}

function format(plan: Plan): string {
  const given = Object(plan) as Partial<Plan>
  if (!Array.isArray(given.steps) || !Array.isArray(given.held)) {
    const words = 'formatPlan(): expected a plan with steps and held, as planChanges() gives it'
    throw new DrainableError('INVALID_OPTIONS', words)
  }
  const { steps, held, notes = [] } = plan
  const more = notes.map((note) => `  note: ${printable(note)}`)
  if (steps.length === 0 && held.length === 0) return ['nothing to change', ...more].join('\n')
  const rows = [
    ...steps.map(({ change, reason }) => [...describe(change), reason] as const),
    ...held.map(({ ref, reason }) => ['leave', formatRef(ref), reason] as const),
  ].map((row) => row.map(printable))
  const widths = [0, 1].map((column) =>
    rows.reduce((most, row) => Math.max(most, row[column]?.length ?? 0), 0),
  )
  const lines = rows.map(([what = '', who = '', why = '']) =>
    `  ${what.padEnd(widths[0] ?? 0)}  ${who.padEnd(widths[1] ?? 0)}  ${why}`.trimEnd(),
  )
  return [`${count(steps.length, 'change')}, ${held.length} left alone`, ...lines, ...more].join(
    '\n',
  )
}

function describe(change: Change): [what: string, who: string] {
  const who = formatRef(change.ref)
  switch (change.kind) {
    case 'hold':
      return [`hold in ${change.to}`, who]
    case 'restore':
      return [`${change.expect} to ${change.to}`, who]
    case 'add': {
      const at = formatAddress(change.address, change.port)
      const weight = change.weight === undefined ? '' : ` weight ${change.weight}`
      return ['add', change.ref.member === at ? `${who}${weight}` : `${who} at ${at}${weight}`]
    }
    case 'remove':
    case 'terminate':
      return [change.kind, who]
  }
}

function count(n: number, word: string): string {
  return `${n} ${word}${n === 1 ? '' : 's'}`
}
