import type { DrainPlan } from '../fleet/plan/assemble.js'
import type { Orphan } from '../fleet/orphans.js'
import type { ReadyReport } from '../core/calls/ready.js'
import type { MemberRef, Reading } from '../provider/contract.js'
import type { DrainReport, RollReport } from '../provider/report.js'
import type { Ended } from './child.js'
import type { Balancer } from './session.js'

/** The verbs of the command. */
export type Verb =
  'drain' | 'ready' | 'status' | 'watch' | 'plan' | 'roll' | 'resume' | 'restore' | 'orphans'

/** An error in a document: what a script can decide on, and the sentence. */
export interface ErrorData {
  readonly code: string
  readonly message: string
}

/** A drain or a roll that no process continues. */
export interface OrphanData extends Pick<Orphan, 'owner' | 'members'> {
  /** The id, for `resume` and `restore`. */
  readonly ticket: string
  readonly kind: 'drain' | 'roll'
  /** ISO 8601. */
  readonly startedAt: string
  /** ISO 8601; null for none. */
  readonly deadline: string | null
}

/** A drain or a roll that holds members of this balancer, and that is listed under other names of the configuration. */
export interface ElsewhereData {
  /** The id. */
  readonly ticket: string
  /** What to name in place of this balancer, such as `east,west`. */
  readonly balancers: string
  /** The members that it may hold. */
  readonly held: readonly MemberRef[]
}

interface Base {
  readonly verb: Verb
  /** The exit status; the table in docs/command.md says what each means. */
  readonly exitCode: number
  readonly balancer?: Balancer
  readonly error?: ErrorData
}

/** How a drain of the command went: `drain`, and `resume` of a drain. */
export interface DrainResult extends Base {
  readonly verb: 'drain' | 'resume'
  /** Whether the command changed anything on the balancer. */
  readonly changed: boolean
  readonly report?: DrainReport
  /** How COMMAND ended, if it ran. */
  readonly command?: Ended
  /** The members that were made ready again. */
  readonly ready?: ReadyReport
  /** Members that were out before and were left as they were found. */
  readonly leftAsFound?: readonly string[]
  /** The ticket of a drain that is left, for `restore` and `resume`. */
  readonly ticket?: string
}

/** The document of one call: what `--json` prints, and the last line of `--jsonl`. */
export type Result =
  | DrainResult
  | (Base & { readonly verb: 'ready'; readonly report?: ReadyReport })
  | (Base & { readonly verb: 'status'; readonly members?: readonly Reading[] })
  | (Base & { readonly verb: 'watch'; readonly report?: DrainReport })
  | (Base & { readonly verb: 'plan'; readonly plan?: DrainPlan })
  | (Base & {
      readonly verb: 'roll' | 'resume'
      readonly roll?: RollReport
      readonly ticket?: string
    })
  | (Base & { readonly verb: 'restore'; readonly report?: DrainReport; readonly ticket?: string })
  | (Base & {
      readonly verb: 'orphans'
      readonly orphans?: readonly OrphanData[]
      readonly elsewhere?: readonly ElsewhereData[]
    })
