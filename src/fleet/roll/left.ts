import type { MemberRef } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef } from '../../provider/member-ref.js'
import type { DrainReport, MemberReport } from '../../provider/report.js'
import { mayOwe } from '../../core/tickets/member.js'
import type { TicketMember } from '../../core/tickets/ticket.js'
import type { RollLedger, ServerState } from './ledger.js'

/** Its members that are down by the roll, or may be, as its ticket says. */
export function downIn({ drain }: ServerState): readonly MemberRef[] {
  const members = drain?.members ?? []
  return members
    .filter((member) => mayOwe(member) && member.phase !== 'removed')
    .map(({ ref }) => ref)
}

/** Whether it was open when its drain began. */
function wasReady({ found }: TicketMember): boolean {
  return found?.own === 'ready'
}

/** Whether something of ours may be left on a server. */
export function holdsAnything({ drain }: ServerState): boolean {
  return drain?.members.some(mayOwe) ?? false
}

/** Whether a server is out by the roll: one of its members served before, and may not since. */
export function isOut({ drain }: ServerState): boolean {
  return drain !== null && drain.members.some((member) => wasReady(member) && mayOwe(member))
}

/** Failed servers have taken every place: `maxUnavailable` is a promise about what is left to serve. */
export function noPlaceLeft({ servers, plan }: RollLedger): DrainableError {
  const out = servers.filter(isOut)
  const cause = out.find(({ error }) => error !== null)?.error ?? undefined
  const { maxUnavailable: most } = plan
  const words = `${out.length} ${out.length === 1 ? 'server is' : 'servers are'} left drained, and maxUnavailable is ${most}, so no other server begins`
  return new DrainableError(
    cause?.code ?? 'POOL_AT_MINIMUM',
    cause === undefined ? words : `${cause.message}; ${words}`,
    { cause: cause?.cause, ...(out[0]?.refs[0] === undefined ? {} : { ref: out[0].refs[0] }) },
  )
}

/** Whether an undo has left it down: another client closed it, or nobody knows who did. */
export function isLeftClosed({ outcome, lastReading }: MemberReport): boolean {
  return outcome === 'overruled' && lastReading?.present === true && lastReading.own !== 'ready'
}

/**
 * Why a server is not known to be out, where its drain went on past its deadline without that: `onTimeout: 'proceed'` is about
 * work that is left, and a server that may still get clients is not to be acted on.
 */
export function stillOpen({ members }: DrainReport): DrainableError | undefined {
  const open = members.find((member) => member.outcome === 'proceeded' && mayServe(member))
  if (open === undefined) return undefined
  const { ref, error, why } = open
  const [first] = why
  if (error !== undefined) return error
  if (first?.code === 'refused') return new DrainableError('REJECTED', first.text, { ref })
  if (first?.code === 'pool-at-minimum')
    return new DrainableError('POOL_AT_MINIMUM', first.text, { ref })
  const words = `${formatRef(ref)} was not seen drained at the deadline, so it may still get clients`
  return new DrainableError('DRAIN_TIMEOUT', words, { ref })
}

/** Whether no look has shown its hold, or the newest one shows it open. */
function mayServe({ phase, lastReading }: MemberReport): boolean {
  return phase === 'active' || (lastReading?.present === true && lastReading.own === 'ready')
}

/** Which comes first where a roll goes on: what is out already, or was left so. */
const FIRST: readonly ServerState['state'][] = ['acted', 'acting', 'draining', 'failed']

/** The servers that are not done, in the order in which a roll takes them. */
export function inOrder<S extends { readonly server: ServerState }>(servers: readonly S[]): S[] {
  const rank = (server: ServerState): number => {
    const at = FIRST.indexOf(server.state)
    if (isOut(server)) return at
    const isBegun = at >= 0 && (server.state !== 'failed' || server.drain !== null)
    return FIRST.length + (isBegun ? at : FIRST.length)
  }
  return servers
    .filter(({ server }) => server.state !== 'done')
    .sort((a, b) => rank(a.server) - rank(b.server))
}
