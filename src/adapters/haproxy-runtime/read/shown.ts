import type { AdminState, MemberRef } from '../../../provider/contract.js'
import type { ProcessInfo } from '../codec/replies.js'
import type { StatRow } from '../codec/stat.js'
import { inheritedState, ownState, type ServerState } from '../codec/state.js'

/** One server in one process. */
export interface ShownServer {
  readonly ref: MemberRef
  readonly state: ServerState
  readonly row: StatRow
  readonly own: AdminState | 'unknown'
  readonly inherited: AdminState | undefined
}

/** What one process tells of a backend: how many of its servers would get work. */
export interface ShownPool {
  readonly serving: number
  readonly total: number
  /** Requests that wait for any of its servers. */
  readonly queued: number
  /** Backup servers among those that would serve. */
  readonly backups: number
}

/** The result of one look at a process. */
export interface ShownProcess {
  /** The time before the counts were asked for. */
  readonly sampledAt: number
  /** The process information right before its counts, from the same command line. */
  readonly info: ProcessInfo
  /** The members by `refKey`; a wanted member that is missing here is proved absent by this look. */
  readonly members: ReadonlyMap<string, ShownServer>
  readonly pools: ReadonlyMap<string, ShownPool>
}

/** Whether a server would get new, non-persistent work. */
export function wouldServe({ own, inherited, state, row }: ShownServer): boolean {
  const open = own === 'ready' && inherited === undefined
  return open && state.weight > 0 && /^(UP|no check)/.test(row.status)
}

export function toShown(
  ref: MemberRef,
  row: StatRow,
  state: ServerState,
  fits: boolean,
): ShownServer {
  return {
    ref,
    row,
    state,
    own: fits ? ownState(state.admin) : 'unknown',
    inherited: inheritedState(state.admin),
  }
}

/**
 * The backend's row counts the servers that are up, not drained and have a weight. A backup that is up serves too.
 */
export function toShownPool(row: StatRow, total: number): ShownPool {
  const { activeServers, backupServers, queued } = row
  return { serving: activeServers + backupServers, backups: backupServers, total, queued }
}
