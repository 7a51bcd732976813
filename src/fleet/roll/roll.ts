import { systemClock } from '../../provider/clock.js'
import type { DrainableProvider } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import type { RollReport } from '../../provider/report.js'
import { Hub } from '../../core/event-hub.js'
import { startTelemetry } from '../../core/telemetry.js'
import { askedFirst } from '../../core/tickets/calls.js'
import { judgeOwner } from '../../core/tickets/owner.js'
import { checkTicket, parseTicket, type RollData, type Ticket } from '../../core/tickets/ticket.js'
import { checkProvider } from '../../core/calls/call-options.js'
import type { ResolvedPolicy } from '../../core/calls/policy.js'
import { ROLL_EVENTS } from './events.js'
import { RollHandle, toRollError, type Roll } from './handle.js'
import { thawServers, type ServerState } from './ledger.js'
import {
  parseResume,
  parseRoll,
  type ResumeRollOptions,
  type ResumeSettings,
  type RollOptions,
} from './options.js'
import { checkTargets, newestRoll, refuseEarlier, refuseUnchecked } from './refuse.js'
import type { RollSpec } from './roll-spec.js'
import { RollRun } from './run.js'
import { findServers, type RollTarget, type Server } from './servers.js'

/**
 * Rolls over servers: drains one after another, calls `act` for it, makes it ready again and checks its health.
 * Resolves if every server is done.
 *
 * The floor of `keepReady` applies to each pool of each balancer, as in every drain: if it leaves no room for a
 * second server, the roll goes one by one. A server whose `act` failed stays drained. For a server that another
 * client had drained before, `act` is called as well, and the server is left drained.
 *
 * @throws `INVALID_OPTIONS`, `NOT_FOUND`, `TICKET_INVALID`, the balancer's own error: before anything is changed
 * @throws `ROLL_STOPPED` with the report in `roll`; `signal.reason` on abort
 *
 * @example
 * ```ts
 * import { fileTickets, roll, type DrainableProvider } from 'drainable'
 *
 * export async function deploy(lb: DrainableProvider, install: (host: string) => Promise<void>) {
 *   const report = await roll(lb, { pool: 'web' }, {
 *     act: async ({ address = '' }) => install(address),
 *     canary: 1,
 *     maxUnavailable: '10%',
 *     timeout: '5m',
 *     waitHealthy: '2m',
 *     tickets: fileTickets('/var/lib/deploy'),
 *     id: 'release-42',
 *   })
 *   console.log(`${report.servers.length} servers done`)
 * }
 * ```
 */
export async function roll(
  provider: DrainableProvider,
  target: RollTarget,
  options: RollOptions,
): Promise<RollReport> {
  const { handle, policy } = begin(provider, target, options, 'roll()')
  const report = await handle.done
  if (report.outcome === 'done') return report
  if (report.outcome === 'aborted' && policy.signal?.aborted === true) throw policy.signal.reason
  throw toRollError(report, policy.tickets !== undefined || policy.onTicket !== undefined)
}

/**
 * Starts a roll and returns a handle at once; its `done` always resolves with a report.
 *
 * @param provider - the balancer, or several as one ({@link combineProviders})
 * @param target - the servers: all its members with the same address are one server
 * @param options - what to do with each server, how many at once, when to stop
 * @throws `INVALID_OPTIONS` at once; everything else is in the report
 *
 * @example
 * ```ts
 * import { startRoll, type DrainableProvider } from 'drainable'
 *
 * export async function deploy(lb: DrainableProvider, install: (host: string) => Promise<void>) {
 *   await using run = startRoll(lb, { pool: 'web' }, { act: ({ address = '' }) => install(address) })
 *   for await (const event of run) if (event.type === 'healthy') console.log(event.address)
 *   return (await run.done).outcome
 * }
 * ```
 */
export function startRoll(
  provider: DrainableProvider,
  target: RollTarget,
  options: RollOptions,
): Roll {
  return begin(provider, target, options, 'startRoll()').handle
}

/**
 * Continues a roll from its ticket, in this process or another. A server that is done stays done. A drain that had
 * begun continues. If `act` had begun or failed, it is called again with the next `attempt`; if it had ended well,
 * the server is made ready. The time to drain begins anew. With a lease and a store, the roll reads the ticket once
 * more when it holds the lease: servers finished in the meantime stay done.
 *
 * @param provider - a provider of the balancers that the ticket names
 * @param ticket - of the roll, as read from a store
 * @param options - what to do with each server: a ticket can't store functions
 * @throws `INVALID_OPTIONS`, `TICKET_INVALID` at once, `CONFLICT` if the process that rolls still lives, or the store
 *   no longer has the ticket
 *
 * @example
 * ```ts
 * import { fileTickets, resumeRoll, type DrainableProvider, type Ticket } from 'drainable'
 *
 * export async function goOn(lb: DrainableProvider, install: (host: string) => Promise<void>) {
 *   const tickets = fileTickets('/var/lib/deploy')
 *   const ticket = (await tickets.get('release-42')) as Ticket | undefined
 *   if (ticket === undefined) return
 *   const act = ({ address = '' }) => install(address)
 *   console.log((await resumeRoll(lb, ticket, { act, tickets }).done).outcome)
 * }
 * ```
 */
export function resumeRoll(
  provider: DrainableProvider,
  ticket: Ticket,
  options: ResumeRollOptions,
): Roll {
  const subject = 'resumeRoll()'
  checkProvider(provider, subject)
  const known = parseTicket(ticket, subject)
  const call = parseResume(options, subject)
  checkTicket(known, provider, subject, false)
  const data = checkResume(known, call, subject)
  const { clock = systemClock, signal, tickets, onTicket, owner } = call
  const policy: ResolvedPolicy = {
    data: known.policy,
    clock,
    signal,
    onEvent: undefined,
    tickets,
    onTicket,
    id: known.id,
    owner: owner ?? known.owner.name ?? undefined,
  }
  const servers = thawServers(data)
  return open({
    provider,
    subject,
    policy,
    act: call.act,
    check: call.waitHealthy,
    onEvent: call.onEvent,
    id: known.id,
    startedAt: known.startedAt,
    lease: call.lease,
    known: servers,
    find: async ({ signal: aborted, waits, term }) => {
      const { plan } = data
      if (term === undefined) return { plan, servers }
      const asked = askedFirst({ clock, signal: aborted, waits })
      return { plan, servers: thawServers(await newestRoll(tickets, asked, known, data, subject)) }
    },
  })
}

function begin(
  provider: DrainableProvider,
  target: RollTarget,
  options: RollOptions,
  subject: string,
): { readonly handle: Roll; readonly policy: ResolvedPolicy } {
  checkProvider(provider, subject)
  const targets = checkTargets(provider, target, subject)
  const { grouping, planFor, ...settings } = parseRoll(options, subject)
  const { policy } = settings
  const id = policy.id ?? crypto.randomUUID()
  const handle = open({
    provider,
    subject,
    id,
    ...settings,
    find: async ({ signal, waits, take, say }) => {
      const { clock, data } = policy
      await refuseEarlier(policy, id, askedFirst({ clock, signal, waits }), subject)
      const patience = data.onUnreachable === 'wait' ? (data.timeout ?? Infinity) : 0
      const search = { clock, signal, grouping, subject, patience, say }
      const found = await findServers(provider, targets, search)
      const plan = planFor(found.length, subject)
      refuseUnchecked(found, plan, subject)
      const servers = found.map(unbegun)
      take(servers.flatMap(({ refs }) => refs))
      return { plan, servers }
    },
  })
  return { handle, policy }
}

function open(spec: RollSpec): Roll {
  const { onEvent, provider } = spec
  const hub = new Hub(onEvent, ROLL_EVENTS, 'roll-end', startTelemetry(provider, 'roll'))
  return new RollHandle(hub, new RollRun(spec, hub))
}

function unbegun({ address, members }: Server): ServerState {
  const refs = members.map(({ ref }) => ref)
  const nothing = { attempt: 0, error: null, drain: null, leftAsFound: [] }
  return { address, refs, state: 'waiting', ...nothing }
}

function checkResume(
  { id, roll: data, owner }: Ticket,
  { id: given, waitHealthy, lease }: ResumeSettings,
  subject: string,
): RollData {
  const refuse = (
    code: 'TICKET_INVALID' | 'INVALID_OPTIONS' | 'CONFLICT',
    words: string,
  ): never => {
    throw new DrainableError(code, `${subject}: ${words}`)
  }
  if (data === undefined)
    return refuse(
      'TICKET_INVALID',
      `roll: ticket '${id}' belongs to a drain: resumeDrain() continues it`,
    )
  if (given !== undefined && given !== id)
    return refuse('INVALID_OPTIONS', `id: the ticket's is '${id}', found '${given}'; leave it out`)
  const byCaller = data.plan.health.by === 'caller'
  if (byCaller && waitHealthy === undefined)
    return refuse('INVALID_OPTIONS', 'waitHealthy: the roll began with a function, give it again')
  if (!byCaller && waitHealthy !== undefined)
    return refuse('INVALID_OPTIONS', 'waitHealthy: the roll began without a function, leave it out')
  // Under a lease, its engine decides which process rolls.
  if (lease !== undefined) return data
  const { state, text } = judgeOwner(owner)
  if (state === 'lives' && owner.pid !== process.pid)
    return refuse('CONFLICT', `ticket '${id}': ${text} and may still roll; stop it first`)
  return data
}
