import { refKey } from '../../provider/member-ref.js'
import type { MemberReport, RollReport, ServerReport } from '../../provider/report.js'
import type { DrainableError } from '../../provider/error.js'
import { foundAs, unread } from '../../core/member/said/report.js'
import { downIn } from './left.js'
import type { ServerState } from './ledger.js'
import type { OneServer } from './one-server.js'

/** One server, as it is reported. */
export type Reported = Pick<OneServer, 'server' | 'times' | 'report' | 'down'>

/** A server of a ticket whose roll has not begun in this process. */
export function asInTicket(server: ServerState): Reported {
  return { server, times: {}, report: undefined, down: () => downIn(server) }
}

/** How a roll goes, from how far each server is. */
export function reportRoll(
  outcome: RollReport['outcome'],
  all: readonly Reported[],
  elapsed: number,
  error: DrainableError | undefined,
): RollReport {
  const having = (...outcomes: readonly ServerReport['outcome'][]): readonly Reported[] =>
    all.filter(({ server }) => outcomes.includes(outcomeOf(server)))
  return {
    outcome,
    servers: all.map(reportServer),
    done: having('done').flatMap(reportMembers),
    failed: having('failed', 'busy').flatMap(reportMembers),
    untouched: having('untouched').flatMap(({ server }) => server.refs),
    leftDrained: all.flatMap((one) => one.down()),
    leftAsFound: all.flatMap(({ server }) => server.leftAsFound),
    elapsed: Math.round(elapsed),
    ...(error === undefined ? {} : { error }),
  }
}

function reportServer({ server, times, report }: Reported): ServerReport {
  const { address, refs, attempt, error } = server
  return {
    ...(address === null ? {} : { address }),
    refs,
    outcome: outcomeOf(server),
    attempts: attempt,
    times,
    ...(error === null ? {} : { error }),
    ...(report === undefined ? {} : { drained: report }),
  }
}

function outcomeOf({ state, drain }: ServerState): ServerReport['outcome'] {
  switch (state) {
    case 'done':
      return 'done'
    case 'postponed':
      return 'busy'
    case 'waiting':
      return 'untouched'
    case 'draining':
      return drain === null ? 'untouched' : 'failed'
    case 'failed':
    case 'acting':
    case 'acted':
      return 'failed'
  }
}

/** What its drain said of each member; of a server that was not drained here, as much as is known. */
function reportMembers(one: Reported): readonly MemberReport[] {
  const { server, report } = one
  const { refs, state, error, drain } = server
  const said = report?.members ?? []
  const failure = error === null ? {} : { error }
  const kept = new Map((drain?.members ?? []).map((member) => [refKey(member.ref), member]))
  const down = new Set(one.down().map(refKey))
  if (said.length > 0)
    return said.map((member) => ({ ...member, held: down.has(refKey(member.ref)), ...failure }))
  return refs.map((ref) => ({
    ...unread(ref, state === 'done' ? 'idle' : 'aborted', 0),
    phase: state === 'done' ? 'active' : 'draining',
    wasAdmin: foundAs(kept.get(refKey(ref))?.found),
    held: down.has(refKey(ref)),
    ...failure,
  }))
}
