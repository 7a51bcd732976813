import type { DrainReport, Outcome, RollReport } from '../provider/report.js'
import { isDrainableError, type ErrorCode } from '../provider/error.js'

/** The exit status of every end, and its line in the table of docs/command.md. */
export const EXIT = {
  ok: 0,
  error: 1,
  usage: 2,
  timeout: 3,
  refused: 4,
  overruled: 5,
  missing: 6,
  unreachable: 7,
  rights: 8,
  unsupported: 9,
  unverified: 10,
  cut: 11,
  command: 12,
  unhealthy: 13,
  ticket: 14,
  hangup: 129,
  interrupted: 130,
  terminated: 143,
} as const

/** What each status means, for the help and for the table in the docs. */
export const MEANING: Readonly<Record<keyof typeof EXIT, string>> = {
  ok: 'done: idle and verified, removed, ready, restored',
  error: 'an error that no other line names',
  usage:
    'the command line or the configuration is wrong, or Node.js is too old; nothing was changed',
  timeout: 'the deadline passed with work left; the member stays drained',
  refused: 'refused by a guard (keepReady, --expect) or by the balancer',
  overruled: 'another client set another state, or work was seen after idle',
  missing: 'no such pool, member, address or ticket; or the member vanished',
  unreachable: 'the balancer can not be reached',
  rights: 'the balancer does not accept the credentials, or they lack a right',
  unsupported: 'the balancer can not do a part of this',
  unverified: 'idle, and not verified: the reasons are in the report',
  cut: 'the deadline passed and the policy went on: work was cut (terminate) or left (proceed)',
  command: 'COMMAND failed; the member stays drained',
  unhealthy: 'made ready, and no check saw it healthy in time',
  ticket: 'a ticket is damaged or can not be kept, or another client holds the lease',
  hangup: 'ended by SIGHUP: the terminal was closed',
  interrupted: 'ended by Ctrl-C (SIGINT)',
  terminated: 'ended by SIGTERM',
}

const OF_ERROR: Readonly<Record<ErrorCode, number>> = {
  INVALID_OPTIONS: EXIT.usage,
  UNSUPPORTED: EXIT.unsupported,
  UNREACHABLE: EXIT.unreachable,
  CALL_TIMEOUT: EXIT.unreachable,
  CONNECTION_LOST: EXIT.unreachable,
  UNAUTHENTICATED: EXIT.rights,
  FORBIDDEN: EXIT.rights,
  MALFORMED_REPLY: EXIT.error,
  PROVIDER_FAILED: EXIT.error,
  NOT_FOUND: EXIT.missing,
  REJECTED: EXIT.refused,
  CONFLICT: EXIT.refused,
  DRAIN_TIMEOUT: EXIT.timeout,
  DRAIN_OVERRULED: EXIT.overruled,
  POOL_AT_MINIMUM: EXIT.refused,
  MEMBER_GONE: EXIT.missing,
  IDLE_LOST: EXIT.overruled,
  HEALTH_TIMEOUT: EXIT.unhealthy,
  ACTION_FAILED: EXIT.command,
  ROLL_STOPPED: EXIT.error,
  TICKET_INVALID: EXIT.ticket,
  NOT_LEADER: EXIT.ticket,
}

const OF_OUTCOME: Readonly<Record<Outcome, number>> = {
  idle: EXIT.ok,
  removed: EXIT.ok,
  restored: EXIT.ok,
  terminated: EXIT.cut,
  proceeded: EXIT.cut,
  timeout: EXIT.timeout,
  overruled: EXIT.overruled,
  refused: EXIT.refused,
  aborted: EXIT.error,
  unreachable: EXIT.unreachable,
  gone: EXIT.missing,
}

/** The status for a thrown value. */
export function exitOfError(error: unknown): number {
  if (!isDrainableError(error)) return EXIT.error
  return error.roll === undefined ? OF_ERROR[error.code] : exitOfRoll(error.roll)
}

/** The status for the end of a drain or an undo. */
export function exitOfDrain(report: DrainReport): number {
  const code = OF_OUTCOME[report.outcome]
  if (code === EXIT.ok) {
    const members = report.members.filter(({ outcome }) => outcome !== 'restored')
    return members.every(({ verifiedIdle }) => verifiedIdle) ? EXIT.ok : EXIT.unverified
  }
  // A drain that did not begin has the same outcome for many reasons: its error is nearer.
  const error = report.error ?? report.members.find((member) => member.error !== undefined)?.error
  return report.outcome === 'refused' && error !== undefined ? exitOfError(error) : code
}

/**
 * The status for the end of a roll: that of what stopped it, or kept a resumed one from beginning; of the first server that
 * failed; or of the worst drain that went well.
 */
export function exitOfRoll(report: RollReport): number {
  const failed = report.error ?? report.servers.find((server) => server.error !== undefined)?.error
  if (failed !== undefined) return exitOfError(failed)
  if (report.outcome === 'aborted') return EXIT.error
  const codes = report.servers.flatMap(({ drained }) =>
    drained === undefined ? [] : [exitOfDrain(drained)],
  )
  return codes.find((code) => code !== EXIT.ok) ?? EXIT.ok
}
