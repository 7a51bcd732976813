/** What the pause before the next look depends on. Milliseconds. */
export interface CadenceInput {
  /** In flight and queued, as last read. Null: not known. */
  readonly work: number | null
  /** For how long that number has not moved. */
  readonly unchangedFor: number
  /** Until something can change by time alone (a quiet time, a deadline). Null: nothing is due. */
  readonly due: number | null
  /** How long one look takes at present. */
  readonly cost: number
  /** The provider's floor. */
  readonly floor: number
  /** Looks that failed in a row. */
  readonly failures: number
}

/** No two looks of one drain are closer than that. */
const FASTEST = 20
/** Slowest look at a member that is under drain. */
const SLOWEST = 1_000
/** A look may take at most one part in that many of the time. */
const SHARE = 5

/**
 * The pause before the next look at a member: fast near zero, slower far away and where nothing
 * moves, never above the provider's floor, never more than a fifth of the time spent looking.
 */
export function nextPause(input: CadenceInput): number {
  const floor = Math.max(input.floor, input.cost * SHARE)
  if (input.failures > 0) return clamp(100 * 2 ** (input.failures - 1), floor)
  const wished = clamp(Math.max(byWork(input.work), input.unchangedFor / 50), floor)
  if (input.due === null) return wished
  return Math.max(floor, Math.min(wished, Math.max(1, input.due)))
}

function clamp(ms: number, floor: number): number {
  return Math.max(floor, Math.min(SLOWEST, Math.max(FASTEST, ms)))
}

function byWork(work: number | null): number {
  if (work === null) return 100
  if (work <= 1) return FASTEST
  if (work <= 10) return 50
  if (work <= 100) return 150
  return 400
}
