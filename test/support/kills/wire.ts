/**
 * What a child that is to be killed and the balancer in its parent say to each other: one JSON a line, over
 * the child's stdin and stdout. The child writes synchronously: what it said before its end is not lost.
 */
import type { Change, ChangeResult, MemberRef } from 'drainable'

/** What the child is to do. */
export type Story =
  | 'drain'
  | 'action'
  | 'reload'
  | 'group'
  | 'abort'
  | 'removed'
  | 'steps'
  | 'resume'
  | 'restore'
  | 'ready'

/** What a child is told first. */
export interface Orders {
  readonly story: Story
  readonly folder: string
  readonly instance: string
  /** It kills itself at this point, counted from 1; 0: never. */
  readonly killAt: number
}

/** The id of its ticket. */
export const TICKET = 'kill'

export type Ask =
  | { readonly id: number; readonly verb: 'describe' }
  | { readonly id: number; readonly verb: 'observe'; readonly refs: readonly MemberRef[] | 'all' }
  | {
      readonly id: number
      readonly verb: 'apply'
      readonly changes: readonly Change[]
      /** The child is killed as soon as this is on its way. */
      readonly dying: boolean
    }

export type Said =
  | Ask
  /** A point was reached. */
  | { readonly verb: 'point'; readonly label: string }
  /** Members were called idle, verified. */
  | { readonly verb: 'idle'; readonly refs: readonly MemberRef[] }

export type Answer =
  | { readonly id: number; readonly index: number; readonly result: WireResult }
  | { readonly id: number; readonly value: unknown }

/** A result of a change, whose error is its text. */
export type WireResult =
  Exclude<ChangeResult, { error: unknown }> | { readonly ref: MemberRef; readonly rejected: string }

/** Calls `take` with each whole line. */
export function lines(take: (line: string) => void): (chunk: string) => void {
  let rest = ''
  return (chunk) => {
    const parts = (rest + chunk).split('\n')
    rest = parts.pop() ?? ''
    parts.forEach(take)
  }
}
