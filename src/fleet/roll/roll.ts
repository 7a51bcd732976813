import { randomUUID } from 'node:crypto'
import type { Waits } from '../../provider/abort.js'
import { pause, systemClock, wallOf, type Clock } from '../../provider/clock.js'
import type { DrainableProvider } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import type { RollReport } from '../../provider/report.js'
import { combinedOf } from '../../core/combined.js'
import { startTelemetry } from '../../core/telemetry.js'
import { askedFirst } from '../../core/tickets/calls.js'
import type { TicketHead } from '../../core/tickets/writing/writer.js'
import { judgeOwner, ownerHere } from '../../core/tickets/owner.js'
import { checkTicket, parseTicket, type RollData, type Ticket } from '../../core/tickets/ticket.js'
import { checkProvider } from '../../core/calls/call-options.js'
import type { ResolvedPolicy } from '../../core/calls/policy.js'
import type { RollEvent } from './events.js'
import { RollHandle, RollHub, toRollError, type Roll } from './handle.js'
import { Leadership, type Term } from '../lease/leadership.js'
import { RollLedger, thawServers } from './ledger.js'
import { enterRoll } from './live.js'
import {
  parseResume,
  parseRoll,
  type LeaseWish,
  type ResumeRollOptions,
  type ResumeSettings,
  type RollOptions,
} from './options.js'
import { checkTargets, newestRoll, refuseEarlier, refuseUnchecked } from './refuse.js'
import { RollRun, type Prepare, type Prepared } from './run.js'
import { findServers, type RollTarget } from './servers.js'
import { Spread } from './spread.js'

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
  const thaw = (roll: RollData): RollLedger['servers'] =>
    thawServers(roll, clock, known.policy.timeout)
  const servers = thaw(data)
  const head = { ...headOf(provider, policy, known.id), startedAt: known.startedAt }
  const spec = { provider, subject, policy, act: call.act, check: call.waitHealthy }
  const [first] = servers.flatMap(({ refs }) => refs)
  return open(spec, call.onEvent, async (aborted, say, waits) => {
    const { leave, claim } = enterRoll(provider, known.id, subject)
    let term: Term | undefined
    try {
      claim(servers.flatMap(({ refs, state }) => (state === 'done' ? [] : refs)))
      term = await takeLease(call.lease, policy, { signal: aborted, waits }, subject, (text) =>
        say(first === undefined ? [] : [{ code: 'lease', ref: first, text }]),
      )
      const asked = askedFirst({ clock: policy.clock, signal: aborted, waits })
      const left =
        term === undefined ? servers : thaw(await newestRoll(tickets, asked, known, data, subject))
      const { plan } = data
      return prepared(provider, policy, { head, plan, servers: left, leave, term, waits })
    } catch (error) {
      await term?.release()
      leave()
      throw error
    }
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
  const settings = parseRoll(options, subject)
  const { policy, act, check, lease, onEvent } = settings
  const id = policy.id ?? randomUUID()
  const spec = { provider, subject, policy, act, check }
  const handle = open(spec, onEvent, async (signal, _, waits) => {
    const { leave, claim } = enterRoll(provider, id, subject)
    let term: Term | undefined
    try {
      term = await takeLease(lease, policy, { signal, waits }, subject)
      const call = { clock: policy.clock, signal }
      await refuseEarlier(policy, id, askedFirst({ ...call, waits }), subject)
      const found = await findServers(provider, targets, call, settings.grouping, subject)
      const plan = settings.planFor(found.length, subject)
      refuseUnchecked(found, plan, subject)
      claim(found.flatMap(({ members }) => members.map(({ ref }) => ref)))
      const servers = found.map(({ address, members }) => ({
        address,
        refs: members.map(({ ref }) => ref),
        state: 'waiting' as const,
        attempt: 0,
        error: null,
        drain: null,
        leftAsFound: [],
      }))
      const head = headOf(provider, policy, id)
      return prepared(provider, policy, { head, plan, servers, leave, term, waits })
    } catch (error) {
      await term?.release()
      leave()
      throw error
    }
  })
  return { handle, policy }
}

function open(
  spec: Omit<ConstructorParameters<typeof RollRun>[0], 'emit' | 'prepare'>,
  onEvent: ((e: RollEvent) => void) | undefined,
  prepare: Prepare,
): Roll {
  const hub = new RollHub(onEvent, startTelemetry(spec.provider, 'roll'))
  const run = new RollRun({ ...spec, prepare, emit: (event) => hub.emit(event) })
  return new RollHandle(hub, run)
}

function prepared(
  provider: DrainableProvider,
  policy: ResolvedPolicy,
  {
    head,
    plan,
    servers,
    leave,
    term,
    waits,
  }: {
    readonly head: TicketHead
    readonly plan: RollData['plan']
    readonly servers: RollLedger['servers']
    readonly leave: () => void
    readonly term: Term | undefined
    readonly waits: Waits
  },
): Prepared {
  const { clock, tickets: store, onTicket, data } = policy
  const marked = term === undefined ? head : { ...head, lease: term.mark }
  const ledger = new RollLedger(marked, { plan, servers }, { store, onTicket }, clock, waits)
  return { ledger, leave, term, spread: Spread.of(provider, clock, data.keepReady, servers) }
}

function headOf(
  provider: DrainableProvider,
  { data, clock, owner }: ResolvedPolicy,
  id: string,
): TicketHead {
  const { name, instance } = provider
  const combined = combinedOf(provider)
  return {
    id,
    instance,
    parts:
      combined === undefined
        ? [{ balancer: null, name, instance }]
        : [...combined.all].map(([balancer, part]) => ({
            balancer,
            name: part.name,
            instance: part.instance,
          })),
    startedAt: new Date(wallOf(clock)).toISOString(),
    deadline: null,
    policy: data,
    owner: ownerHere(owner ?? null),
  }
}

/**
 * Takes the lease, if there is one; a resumed roll waits for the lease of a process that died.
 *
 * @throws `NOT_LEADER` naming the holder; the engine's own error
 */
async function takeLease(
  wish: LeaseWish | undefined,
  { clock, owner }: ResolvedPolicy,
  { signal, waits }: { readonly signal: AbortSignal; readonly waits: Waits },
  subject: string,
  say?: (text: string) => void,
): Promise<Term | undefined> {
  if (wish === undefined) return undefined
  const { lease, ttl } = wish
  const leadership = new Leadership({ lease, ttl, clock, owner, subject, waits })
  const until = clock.now() + (say === undefined ? 0 : ttl + leadership.retry)
  for (;;) {
    const answer = await leadership.acquire(signal)
    if (!('holder' in answer)) return answer
    const refusal = leadership.refusal(answer.holder)
    if (clock.now() >= until) throw refusal
    say?.(`${refusal.message}; the roll waits for it until ${dateOf(clock, until)}`)
    await pause(clock, leadership.retry, signal)
  }
}

/** A time of the clock, in ISO 8601. */
function dateOf(clock: Clock, at: number): string {
  return new Date(wallOf(clock) + at - clock.now()).toISOString()
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
