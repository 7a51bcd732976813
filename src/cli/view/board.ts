import type { LoadEvent } from '../../core/events.js'
import type { RollEvent } from '../../fleet/roll/events.js'
import { eventWords, lineKey } from '../words/event.js'

/** How far back the trend goes, in milliseconds. */
export const TREND = 60_000

/** How far a member is; the words of a roll come after those of a drain. */
export type Stage = LoadEvent['phase'] | 'command' | 'opening' | 'ready' | 'failed' | 'postponed'

/** What is shown of one member. */
export interface Row {
  readonly name: string
  stage: Stage
  /** The newest load; undefined before the first look. */
  load: LoadEvent | undefined
  /** What it came to: the proof, or what went wrong. */
  note: string | undefined
  /** The load of the last minute, oldest first. */
  trend: { readonly at: number; readonly busy: number }[]
}

/** What is shown of a call: one row for each member, in the order in which they were first heard of. */
export class Board {
  readonly rows = new Map<string, Row>()

  /** Takes an event in. */
  hear(event: RollEvent): void {
    if (!('ref' in event)) return
    for (const name of namesOf(event)) this.#change(this.#row(name), event)
  }

  #row(name: string): Row {
    const found = this.rows.get(name)
    if (found !== undefined) return found
    const row: Row = { name, stage: 'active', load: undefined, note: undefined, trend: [] }
    this.rows.set(name, row)
    return row
  }

  #change(row: Row, event: Extract<RollEvent, { readonly ref: unknown }>): void {
    switch (event.type) {
      case 'phase':
        row.stage = event.to
        return
      case 'load':
        this.#load(row, event)
        return
      case 'idle':
        row.stage = 'idle'
        row.note = event.proof.text
        return
      case 'idle-lost':
        row.note = eventWords(event)
        return
      case 'act':
        row.stage = 'command'
        return
      case 'ready':
        row.stage = 'opening'
        row.note = undefined
        return
      case 'healthy':
        row.stage = 'ready'
        return
      case 'postponed':
        row.stage = 'postponed'
        row.note = eventWords(event)
        return
      case 'failed':
        row.stage = 'failed'
        row.note = event.error.message
        return
      case 'fault':
        row.note = event.error.message
        return
      case 'in-force':
      case 'removed':
      case 'overruled':
      case 'terminated':
        return
      default:
        event satisfies never
    }
  }

  #load(row: Row, event: LoadEvent): void {
    const at = Date.parse(event.at)
    row.load = event
    row.stage = event.phase
    if (event.phase !== 'idle') row.note = undefined
    row.trend.push({ at, busy: event.active + event.queued })
    // The one before the window says how it begins.
    while ((row.trend[1]?.at ?? Infinity) < at - TREND) row.trend.shift()
  }
}

/** An event of a roll is about every member of its server. */
function namesOf(event: Extract<RollEvent, { readonly ref: unknown }>): readonly string[] {
  return 'refs' in event ? event.refs.map(lineKey) : [lineKey(event.ref)]
}
