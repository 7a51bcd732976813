import { pause } from '../../provider/clock.js'
import type { CallContext, Change, ChangeResult, MemberRef } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef } from '../../provider/member-ref.js'
import { z } from 'zod'
import { AnotherProcess, type Channel } from './channel.js'
import {
  addServer,
  delServer,
  refusal,
  setHealthDown,
  setState,
  setWeight,
  shutdownSession,
  shutdownSessions,
  waitRemovable,
} from './codec-commands.js'
import { identityOf, isSameServer, ownState, type ServerState } from './codec-state.js'
import { type ProcessView, wouldServe } from './process-view.js'

/** What a change needs of the provider. */
export interface Workshop {
  /**
   * One changing command line on a connection of its own, read to the close.
   *
   * @throws `AnotherProcess` where another process executed it than the one that was read
   */
  readonly send: (line: string, signal: AbortSignal) => Promise<string>
  readonly view: ProcessView
  readonly channel: Channel
  /** Old processes that can be spoken to, for what must be cut there too. */
  readonly others: readonly Channel[]
  /** Servers that track this one and go along with it. */
  readonly followers: (ref: MemberRef) => readonly MemberRef[]
  /** How many servers of a follower's backend must stay. */
  readonly keepFollowers: number
  /** Whether `wait srv-removable` exists. */
  readonly canWait: boolean
}

type Of<K extends Change['kind']> = Extract<Change, { kind: K }>

const ORDER = { ready: 0, drain: 1, maint: 2 } as const
/** A server that is being removed: how long its last connections are waited for within one call. */
const REMOVE_PATIENCE = 3_000
/** How long a cut may take to show in the counts, and between two looks. */
const CUT_PATIENCE = 1_000
const CUT_LOOK = 20
/** A process that is being replaced refuses; the next connection finds the new one. */
const REPLACED_PATIENCE = 500
const REPLACED_LOOK = 20

function rejected(ref: MemberRef, error: DrainableError): ChangeResult {
  return { ref, status: 'rejected', error }
}

function conflict(ref: MemberRef, words: string, retryable = false): ChangeResult {
  return rejected(
    ref,
    new DrainableError('CONFLICT', `${formatRef(ref)} ${words}`, {
      ref,
      retryable,
      provider: 'haproxy-runtime',
    }),
  )
}

/**
 * One change, judged against what is there now.
 *
 * @param found - the server as just read; undefined where it is not there
 */
export async function applyChange(
  shop: Workshop,
  change: Change,
  found: ServerState | undefined,
  ctx: CallContext,
): Promise<ChangeResult> {
  const { ref } = change
  if (change.kind === 'add') return add(shop, change, found, ctx)
  if (found === undefined) {
    return rejected(
      ref,
      new DrainableError(
        'NOT_FOUND',
        `backend ${ref.pool} has no server ${ref.member}, check the names against the configuration`,
        { ref, provider: 'haproxy-runtime' },
      ),
    )
  }
  if (!isSameServer(change.identity, found)) {
    return conflict(
      ref,
      `is ${identityOf(found)} now, it was ${change.identity ?? ''}: another server has its place, nothing was touched`,
    )
  }
  switch (change.kind) {
    case 'hold':
      return hold(shop, change, found, ctx)
    case 'restore':
      return restore(shop, change, found, ctx)
    case 'terminate':
      return terminate(shop, change, ctx)
    case 'remove':
      return remove(shop, change, found, ctx)
    default:
      throw change satisfies never
  }
}

/**
 * Sends a change that can be repeated, until the process that was read has executed it: while a
 * reload hands the socket over, its predecessor takes connections too, and obeys or refuses.
 */
async function tell(
  shop: Workshop,
  ref: MemberRef,
  line: string,
  ctx: CallContext,
): Promise<string> {
  const until = ctx.clock.now() + REPLACED_PATIENCE
  for (;;) {
    try {
      const reply = await shop.send(line, ctx.signal)
      shop.view.touch(ref)
      if (!reply.startsWith('Proxy is disabled') || ctx.clock.now() >= until) return reply
    } catch (error) {
      if (!(error instanceof AnotherProcess) || ctx.clock.now() >= until) throw error
    }
    await pause(ctx.clock, REPLACED_LOOK, ctx.signal)
  }
}

async function hold(
  shop: Workshop,
  change: Of<'hold'>,
  found: ServerState,
  ctx: CallContext,
): Promise<ChangeResult> {
  const { ref, to } = change
  // The own bit is set whatever is inherited: the parent's release would open this one.
  if (ORDER[ownState(found.admin)] >= ORDER[to]) return { ref, status: 'unchanged' }
  const short = ownState(found.admin) === 'ready' ? await leavesTooFew(shop, ref, ctx) : undefined
  if (short !== undefined) return rejected(ref, short)
  const command = setState(ref, to)
  const reply = await tell(shop, ref, command, ctx)
  return reply === '' ? { ref, status: 'applied' } : rejected(ref, refusal(ref, command, reply))
}

/** Whether the servers that track this one would leave too few in their backends. */
async function leavesTooFew(
  shop: Workshop,
  ref: MemberRef,
  ctx: CallContext,
): Promise<DrainableError | undefined> {
  const followers = shop.followers(ref)
  if (followers.length === 0 || shop.keepFollowers === 0) return undefined
  const going = new Map<string, Set<string>>([[ref.pool, new Set([ref.member])]])
  for (const { pool, member } of followers) {
    going.set(pool, (going.get(pool) ?? new Set()).add(member))
  }
  const sight = await shop.view.read(going, shop.channel, ctx.clock, ctx.signal)
  for (const pool of new Set(followers.map((follower) => follower.pool))) {
    const serving = sight.pools.get(pool)?.serving ?? 0
    const lost = [...sight.members.values()].filter(
      (seen) => seen.ref.pool === pool && wouldServe(seen),
    ).length
    if (lost === 0 || serving - lost >= shop.keepFollowers) continue
    const names = followers.map(({ pool: of, member }) => `${of}/${member}`).join(', ')
    return new DrainableError(
      'POOL_AT_MINIMUM',
      `${formatRef(ref)} was not drained: ${names} ${followers.length === 1 ? 'tracks' : 'track'} it and would go along, which leaves ${Math.max(0, serving - lost)} serving in ${pool}; the option keepFollowers of haproxyRuntime() is ${shop.keepFollowers}`,
      { ref, provider: 'haproxy-runtime' },
    )
  }
  return undefined
}

async function restore(
  shop: Workshop,
  change: Of<'restore'>,
  found: ServerState,
  ctx: CallContext,
): Promise<ChangeResult> {
  const { ref, expect, to } = change
  const own = ownState(found.admin)
  if (own === to) return { ref, status: 'unchanged' }
  if (own !== expect) {
    return conflict(
      ref,
      `is '${own}', expected '${expect}': somebody else changed it, nothing was touched`,
    )
  }
  const line = own === 'maint' ? await leaveMaint(shop, ref, to, found, ctx) : setState(ref, to)
  const reply = await tell(shop, ref, line, ctx)
  if (reply !== '') return rejected(ref, refusal(ref, 'set server', reply))
  if (own === 'maint' && to === 'drain') await distrustHealth(shop, ref, found, ctx)
  return { ref, status: 'applied' }
}

/**
 * The line that takes a server out of maintenance. `on-marked-up shutdown-backup-sessions` cuts the
 * sessions on backup servers at that moment, unless the server comes up at weight 0. The option
 * can't be read, so where the backend has a backup that serves, that way is taken.
 */
async function leaveMaint(
  shop: Workshop,
  ref: MemberRef,
  to: 'ready' | 'drain' | 'maint',
  found: ServerState,
  ctx: CallContext,
): Promise<string> {
  const sight = await shop.view.read(
    new Map([[ref.pool, new Set([ref.member])]]),
    shop.channel,
    ctx.clock,
    ctx.signal,
  )
  const backups = sight.pools.get(ref.pool)?.backups ?? 0
  if (backups === 0 || found.weight === 0) return setState(ref, to)
  // Absolute weights are refused under a static balance algorithm; shares of the configured one are not.
  const weight = found.weight === found.initialWeight ? '100%' : found.weight
  const steps = [setWeight(ref, '0%'), setState(ref, 'ready')]
  if (to === 'drain') steps.push(setState(ref, 'drain'))
  return [...steps, setWeight(ref, weight)].join(';')
}

/**
 * With `fall 1` nothing in HAProxy's counters tells whether a check has passed since maintenance.
 * Under drain the server is therefore marked down, and comes up by its own passed checks.
 */
async function distrustHealth(
  shop: Workshop,
  ref: MemberRef,
  found: ServerState,
  ctx: CallContext,
): Promise<void> {
  if (!found.checked) return
  const sight = await shop.view.read(
    new Map([[ref.pool, new Set([ref.member])]]),
    shop.channel,
    ctx.clock,
    ctx.signal,
  )
  const seen = [...sight.members.values()][0]
  if (seen?.own !== 'drain' || seen.row.check?.fall !== 1) return
  if (await backupsWork(shop, ref, ctx)) return // coming up would cut them, see leaveMaint()
  await tell(shop, ref, setHealthDown(ref), ctx)
}

/** Whether a backup server of that backend holds work. */
async function backupsWork(shop: Workshop, ref: MemberRef, ctx: CallContext): Promise<boolean> {
  const whole = new Map([[ref.pool, 'all' as const]])
  const sight = await shop.view.read(whole, shop.channel, ctx.clock, ctx.signal)
  return [...sight.members.values()].some(({ row }) => row.backupServers > 0 && row.active > 0)
}

async function terminate(
  shop: Workshop,
  change: Of<'terminate'>,
  ctx: CallContext,
): Promise<ChangeResult> {
  const { ref } = change
  const wanted = new Map([[ref.pool, new Set([ref.member])]])
  const load = async (): Promise<number> => {
    const sight = await shop.view.read(wanted, shop.channel, ctx.clock, ctx.signal)
    return [...sight.members.values()][0]?.row.active ?? 0
  }
  const before = await load()
  const command = shutdownSessions(ref)
  const reply = before === 0 ? '' : await shop.send(command, ctx.signal)
  if (reply !== '') return rejected(ref, refusal(ref, command, reply))
  let elsewhere = 0
  for (const other of shop.others) elsewhere += await cutOld(other, ref, ctx)
  const until = ctx.clock.now() + CUT_PATIENCE
  // Queued requests come next: less than before is the cut showing, the caller asks again for the rest.
  while (before > 0 && ctx.clock.now() < until) {
    if ((await load()) < before) break
    await pause(ctx.clock, CUT_LOOK, ctx.signal)
  }
  return { ref, status: 'applied', terminated: before + elsewhere, atMost: before > 0 }
}

/** An old process refuses `shutdown sessions server` (its proxies are disabled), single streams can be cut. */
async function cutOld(channel: Channel, ref: MemberRef, ctx: CallContext): Promise<number> {
  const [reply = ''] = await channel.run(['show sess'], ctx.signal)
  const pointers = reply
    .split('\n')
    .filter((line) => {
      const words = line.split(' ')
      return words.includes(`be=${ref.pool}`) && words.includes(`srv=${ref.member}`)
    })
    .map((line) => line.slice(0, line.indexOf(':')))
    .filter((pointer) => pointer.startsWith('0x'))
  if (pointers.length === 0) return 0
  const replies = await channel.run(pointers.map(shutdownSession), ctx.signal)
  return replies.filter((text) => text === '').length
}

async function remove(
  shop: Workshop,
  change: Of<'remove'>,
  found: ServerState,
  ctx: CallContext,
): Promise<ChangeResult> {
  const { ref } = change
  // Only from maintenance, and the way there closes its pooled connections. A member that is in
  // maintenance already is never opened to flush them: HAProxy purges them by itself.
  if (ownState(found.admin) !== 'maint') {
    const raise = setState(ref, 'maint')
    const reply = await tell(shop, ref, raise, ctx)
    if (reply !== '') return rejected(ref, refusal(ref, raise, reply))
  }
  const until = ctx.clock.now() + REMOVE_PATIENCE
  const command = delServer(ref)
  for (;;) {
    if (shop.canWait) await shop.send(waitRemovable(ref, 300), ctx.signal)
    const reply = await tell(shop, ref, command, ctx)
    if (reply.startsWith('Server deleted')) return { ref, status: 'applied' }
    const error = refusal(ref, command, reply)
    if (!/still has connections/.test(reply) || ctx.clock.now() >= until)
      return rejected(ref, error)
    await pause(ctx.clock, 100, ctx.signal)
  }
}

const addSchema = z.looseObject({ keywords: z.string().exactOptional() })

async function add(
  shop: Workshop,
  change: Of<'add'>,
  found: ServerState | undefined,
  ctx: CallContext,
): Promise<ChangeResult> {
  const { ref, address, port, weight, native } = change
  const host = address.includes(':') ? `[${address}]` : address
  if (found !== undefined) {
    if (identityOf(found) === `${host}:${port}`) return { ref, status: 'unchanged' }
    return conflict(ref, `is there already, as ${identityOf(found)}`)
  }
  const options = addSchema.safeParse(native ?? {})
  const keywords = options.success ? options.data.keywords : undefined
  const command = addServer(ref, {
    address,
    port,
    ...(weight === undefined ? {} : { weight }),
    ...(keywords === undefined ? {} : { keywords }),
  })
  const reply = await shop.send(command, ctx.signal)
  if (!reply.startsWith('New server registered')) return rejected(ref, refusal(ref, command, reply))
  // A new server is in maintenance, and its checks are off.
  const checked = keywords?.split(' ').includes('check') === true
  const opening = [
    ...(checked ? [`enable health ${ref.pool}/${ref.member}`] : []),
    setState(ref, 'ready'),
  ].join(';')
  const opened = await tell(shop, ref, opening, ctx)
  return opened === '' ? { ref, status: 'applied' } : rejected(ref, refusal(ref, opening, opened))
}
