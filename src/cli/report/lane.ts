import type { LoadEvent } from '../../core/events.js'
import type { MemberRef } from '../../provider/contract.js'
import type { Phase, WhyCode } from '../../provider/report.js'

/** What one look showed of a member. */
export interface Point {
  /** Epoch milliseconds. */
  readonly at: number
  /** In flight, over every process that could be read. */
  readonly active: number
  /** How many of them are in processes from before a reload. */
  readonly old: number
  readonly queued: number
  /** Whether every process could be read: if not, the numbers are lower bounds. */
  readonly complete: boolean
  /** How long the oldest has been in flight, in milliseconds. */
  readonly oldest: number | null
  readonly phase: Phase
  /** Its own state; null if it was not read, or absent. */
  readonly own: string | null
  readonly health: string | null
  /** The first reason why it is not idle; empty if it is. */
  readonly why: string
}

/** A stretch of time in which something was the same. */
export interface Span {
  readonly from: number
  readonly to: number
  readonly label: string
}

/** Something that happened to a member. */
export interface Mark {
  readonly at: number
  readonly text: string
  /** How often it happened in a row, and when for the last time. */
  readonly times: number
  readonly last: number
}

/** What is known of one member. */
export interface Lane {
  readonly ref: MemberRef
  readonly from: number
  readonly to: number
  readonly points: readonly Point[]
  /** How many looks the points stand for. */
  readonly looks: number
  readonly phases: readonly Span[]
  readonly states: readonly Span[]
  readonly commands: readonly Span[]
  readonly marks: readonly Mark[]
  /** How many marks are left out, because there were too many. */
  readonly omitted: number
  /** For how long each reason was the first one, in milliseconds, the longest first. */
  readonly waited: readonly (readonly [WhyCode, number])[]
}

const MOST_POINTS = 4_000
const MOST_MARKS = 200

/** The lane of one member while it is written. What it holds is bounded, however long the drain. */
export class LaneRecord {
  readonly ref: MemberRef
  readonly #from: number
  #to: number
  #looks = 0
  #points: Point[] = []
  #previous: LoadEvent | undefined
  readonly #phases: { readonly at: number; readonly label: string }[] = []
  readonly #states: { readonly at: number; readonly label: string }[] = []
  readonly #commands: { from: number; to: number | undefined }[] = []
  readonly #marks: Mark[] = []
  #omitted = 0
  readonly #waited = new Map<WhyCode, number>()

  constructor(ref: MemberRef, at: number) {
    this.ref = ref
    this.#from = at
    this.#to = at
  }

  /** A moment that belongs to this member. */
  reach(at: number): void {
    this.#to = Math.max(this.#to, at)
  }

  phase(at: number, from: Phase, to: Phase): void {
    this.reach(at)
    if (this.#phases.length === 0) this.#phases.push({ at: this.#from, label: from })
    this.#phases.push({ at, label: to })
  }

  /** The drain is over: its member serves again. */
  opened(at: number): void {
    this.reach(at)
    if (this.#phases.length > 0) this.#phases.push({ at, label: 'active' })
  }

  look(event: LoadEvent): void {
    const at = Date.parse(event.at)
    this.reach(at)
    this.#looks += 1
    const before = this.#previous
    this.#previous = event
    const [waitedFor] = before?.why ?? []
    if (before !== undefined && waitedFor !== undefined) {
      const waited = this.#waited.get(waitedFor.code) ?? 0
      this.#waited.set(waitedFor.code, waited + at - Date.parse(before.at))
    }
    if (this.#phases.length === 0) this.#phases.push({ at: this.#from, label: event.phase })
    this.#sayChanges(at, event, before)
    const point = toPoint(at, event)
    const last = this.#points.at(-1)
    if (last !== undefined && isSame(last, point)) return
    if (this.#points.length === MOST_POINTS) this.#points = [...thin(this.#points, MOST_POINTS / 2)]
    this.#points.push(point)
  }

  mark(at: number, text: string): void {
    this.reach(at)
    const last = this.#marks.at(-1)
    if (last?.text === text) {
      this.#marks[this.#marks.length - 1] = { ...last, times: last.times + 1, last: at }
      return
    }
    // The first ones and the newest ones: between them is what repeats.
    if (this.#marks.length === MOST_MARKS) {
      this.#marks.splice(MOST_MARKS / 2, 1)
      this.#omitted += 1
    }
    this.#marks.push({ at, text, times: 1, last: at })
  }

  commandBegan(at: number): void {
    this.mark(at, 'COMMAND began')
    this.#commands.push({ from: at, to: undefined })
  }

  /** Nothing if it does not run. */
  commandEnded(at: number): void {
    const running = this.#commands.at(-1)
    if (running === undefined || running.to !== undefined) return
    running.to = at
    this.mark(at, 'COMMAND ended')
  }

  lane(): Lane {
    return {
      ref: this.ref,
      from: this.#from,
      to: this.#to,
      points: this.#points,
      looks: this.#looks,
      phases: toSpans(this.#phases, this.#to),
      states: toSpans(this.#states, this.#to),
      commands: this.#commands.map(({ from, to = this.#to }) => ({ from, to, label: 'COMMAND' })),
      marks: this.#marks,
      omitted: this.#omitted,
      waited: [...this.#waited].filter(([, ms]) => ms > 0).sort(([, a], [, b]) => b - a),
    }
  }

  #sayChanges(at: number, { own, health }: LoadEvent, before: LoadEvent | undefined): void {
    if (own !== null && own !== this.#states.at(-1)?.label) {
      const was = this.#states.at(-1)?.label
      this.#states.push({ at, label: own })
      if (was !== undefined) this.mark(at, `state on the balancer: ${was} -> ${own}`)
    }
    const was = before?.health ?? null
    if (health !== null && was !== null && was !== health)
      this.mark(at, `health: ${was} -> ${health}`)
  }
}

function toPoint(at: number, event: LoadEvent): Point {
  const { active, queued, complete, oldest, phase, own, health, scopes, why } = event
  const old = scopes
    .filter((scope) => scope.old === true && scope.state === 'read')
    .reduce((sum, scope) => sum + scope.active, 0)
  return { at, active, old, queued, complete, oldest, phase, own, health, why: why[0]?.text ?? '' }
}

/** Whether the picture of one is that of the other. */
function isSame(one: Point, other: Point): boolean {
  const keys = ['active', 'old', 'queued', 'complete', 'phase', 'own', 'health'] as const
  return keys.every((key) => one[key] === other[key])
}

/**
 * At most so many points. Of two neighbours one is left: from the earlier moment on, with the higher numbers of both. So
 * work is never shown to end before it did.
 */
export function thin(points: readonly Point[], most: number): readonly Point[] {
  let left = points
  while (left.length > most) {
    const last = left.at(-1)
    const pairs = Array.from({ length: Math.ceil((left.length - 1) / 2) }, (_, i) =>
      higher(left.slice(2 * i, Math.min(2 * i + 2, left.length - 1))),
    )
    left = [...pairs, ...(last === undefined ? [] : [last])]
  }
  return left
}

function higher(points: readonly Point[]): Point {
  const [first, second] = points
  if (first === undefined) throw new Error('no points to thin')
  if (second === undefined) return first
  const busier = second.active + second.queued > first.active + first.queued ? second : first
  return {
    ...busier,
    at: first.at,
    active: Math.max(first.active, second.active),
    old: Math.max(first.old, second.old),
    queued: Math.max(first.queued, second.queued),
    complete: first.complete && second.complete,
  }
}

function toSpans(
  changes: readonly { readonly at: number; readonly label: string }[],
  to: number,
): readonly Span[] {
  return changes
    .map(({ at, label }, i) => ({ from: at, to: changes[i + 1]?.at ?? to, label }))
    .filter(({ from, to: end }, i, all) => end > from || i === all.length - 1)
}
