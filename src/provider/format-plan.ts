import { formatAddress } from './address.js'
import type { Change } from './contract.js'
import { DrainableError } from './error.js'
import { formatRef } from './member-ref.js'
import { printable } from './quote.js'
import type { Plan } from './desired.js'

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
