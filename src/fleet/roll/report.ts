import type { MemberRef } from '../../provider/contract.js'
import { refKey } from '../../provider/member-ref.js'
import type { MemberReport, RollReport, ServerReport } from '../../provider/report.js'
import type { DrainableError } from '../../provider/error.js'
import { unread } from '../../core/member/said/report.js'
import { mayOwe } from '../../core/tickets/member.js'
import type { TicketMember } from '../../core/tickets/ticket.js'
import type { ServerState } from './ledger.js'
import type { OneServer } from './one-server.js'

/** How a roll goes, from how far each server is. */
export function reportRoll(
  outcome: RollReport['outcome'],
  servers: readonly ServerState[],
  known: ReadonlyMap<ServerState, OneServer>,
  elapsed: number,
  error: DrainableError | undefined,
): RollReport {
  const membersOf = (server: ServerState): readonly MemberReport[] =>
    reportMembers(server, known.get(server))
  const all = servers.map((server) => reportServer(server, known.get(server)))
  const having = (...outcomes: readonly ServerReport['outcome'][]): readonly ServerState[] =>
    servers.filter((_, n) => outcomes.includes(all[n]?.outcome ?? 'untouched'))
  const done = having('done').flatMap(membersOf)
  return {
    outcome,
    servers: all,
    done,
    failed: having('failed', 'busy').flatMap(membersOf),
    untouched: having('untouched').flatMap(({ refs }) => refs),
    leftDrained: servers.flatMap((server) => known.get(server)?.down() ?? []),
    leftAsFound: servers.flatMap(({ leftAsFound }) => leftAsFound),
    elapsed: Math.round(elapsed),
    ...(error === undefined ? {} : { error }),
  }
}

function reportServer(server: ServerState, one: OneServer | undefined): ServerReport {
  const { address, refs, attempt, error } = server
  return {
    ...(address === null ? {} : { address }),
    refs,
    outcome: outcomeOf(server),
    attempts: attempt,
    times: one?.times ?? {},
    ...(error === null ? {} : { error }),
    ...(one?.report === undefined ? {} : { drained: one.report }),
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
function reportMembers(
  { refs, state, error, drain }: ServerState,
  one: OneServer | undefined,
): readonly MemberReport[] {
  const said = one?.report?.members ?? []
  const failure = error === null ? {} : { error }
  const kept = new Map((drain?.members ?? []).map((member) => [refKey(member.ref), member]))
  const held = (ref: MemberRef): boolean => {
    const member = kept.get(refKey(ref))
    return member !== undefined && mayOwe(member)
  }
  if (said.length > 0)
    return said.map((member) => ({ ...member, held: held(member.ref), ...failure }))
  return refs.map((ref) => ({
    ...unread(ref, state === 'done' ? 'idle' : 'aborted', 0),
    phase: state === 'done' ? 'active' : 'draining',
    wasAdmin: foundAs(kept.get(refKey(ref))),
    held: held(ref),
    ...failure,
  }))
}

function foundAs(member: TicketMember | undefined): MemberReport['wasAdmin'] {
  const own = member?.found?.own ?? 'ready'
  return own === 'unknown' ? 'ready' : own
}
