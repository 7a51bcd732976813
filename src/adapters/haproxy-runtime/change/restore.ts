import type {
  AdminState,
  CallContext,
  ChangeResult,
  MemberRef,
} from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import { refusal, setHealthDown, setState, setWeight } from '../codec/commands.js'
import { identityOf, ownState, type ServerState } from '../codec/state.js'
import { leftBehind, readState, rejected, tell, type Of, type Workshop } from './workshop.js'
import { isSameIdentity } from '../../../provider/member-ref.js'

/** Undoes a hold, if the expected state is found. */
export function restore(
  shop: Workshop,
  change: Of<'restore'>,
  found: ServerState,
  ctx: CallContext,
): Promise<ChangeResult> {
  return move(shop, change.ref, found, change.to, ctx)
}

/** Sets the state by commands that cut nothing. */
async function move(
  shop: Workshop,
  ref: MemberRef,
  from: ServerState,
  to: AdminState,
  ctx: CallContext,
): Promise<ChangeResult> {
  const own = ownState(from.admin)
  const line = own === 'maint' ? await leaveMaint(shop, ref, to, from, ctx) : setState(ref, to)
  const reply = await tell(shop, ref, line, ctx)
  if (reply !== '') {
    const error = refusal(ref, 'set server', reply)
    if (!line.includes(';')) return rejected(ref, error)
    // HAProxy runs the commands of a line one by one, even after a refused one.
    const now = await readState(shop, ref, ctx)
    const is = (state: AdminState): boolean =>
      now !== undefined && ownState(now.admin) === state && now.weight === from.weight
    if (now === undefined || is(own)) return rejected(ref, error)
    if (!is(to)) {
      const left = `it is '${ownState(now.admin)}' with weight ${now.weight} now, it had ${from.weight}`
      return leftBehind(ref, error, left)
    }
  }
  if (own === 'maint' && to === 'drain') await distrustHealth(shop, ref, from, ctx)
  return { ref, status: 'applied' }
}

/**
 * Restores a server that was put into maintenance for a change that was then refused. A state that another client set
 * meanwhile is left alone.
 *
 * @param before - the state as it was found
 * @returns the refusal; `unknown` if the server stays in maintenance
 */
export async function putBack(
  shop: Workshop,
  ref: MemberRef,
  before: ServerState,
  refused: DrainableError,
  ctx: CallContext,
): Promise<ChangeResult> {
  const now = await readState(shop, ref, ctx)
  const ours = now !== undefined && ownState(now.admin) === 'maint'
  if (!ours || !isSameIdentity(identityOf(before), identityOf(now))) return rejected(ref, refused)
  const result = await move(shop, ref, now, ownState(before.admin), ctx)
  if (!('error' in result)) return rejected(ref, refused)
  return leftBehind(
    ref,
    refused,
    `it was put into maintenance for it and could not be put back: ${result.error.message}`,
  )
}

/**
 * The line that takes a server out of maintenance. `on-marked-up shutdown-backup-sessions` cuts the sessions on
 * backup servers at that moment, unless the server comes up at weight 0. The option can't be read, so this is done if
 * the backend has a backup server with work.
 */
async function leaveMaint(
  shop: Workshop,
  ref: MemberRef,
  to: AdminState,
  found: ServerState,
  ctx: CallContext,
): Promise<string> {
  const sight = await shop.view.read(
    new Map([[ref.pool, new Set([ref.member])]]),
    shop.channel,
    ctx,
  )
  const backups = sight.pools.get(ref.pool)?.backups ?? 0
  if (backups === 0 || found.weight === 0) return setState(ref, to)
  // A static balance algorithm refuses absolute weights, but not percentages of the configured one.
  const weight = found.weight === found.initialWeight ? '100%' : found.weight
  const steps = [setWeight(ref, '0%'), setState(ref, 'ready')]
  if (to === 'drain') steps.push(setState(ref, 'drain'))
  return [...steps, setWeight(ref, weight)].join(';')
}

/**
 * Marks a server with `fall 1` down under drain, so that it comes up by its own passed checks: HAProxy's counters do
 * not show whether a check has passed since maintenance.
 */
async function distrustHealth(
  shop: Workshop,
  ref: MemberRef,
  found: ServerState,
  ctx: CallContext,
): Promise<void> {
  if (!found.checks) return
  const sight = await shop.view.read(
    new Map([[ref.pool, new Set([ref.member])]]),
    shop.channel,
    ctx,
  )
  const seen = [...sight.members.values()][0]
  if (seen?.own !== 'drain' || seen.row.check?.fall !== 1) return
  if (await backupsWork(shop, ref, ctx)) return // coming up would cut them, see leaveMaint()
  await tell(shop, ref, setHealthDown(ref), ctx)
}

/** Whether a backup server of that backend holds work. */
async function backupsWork(shop: Workshop, ref: MemberRef, ctx: CallContext): Promise<boolean> {
  const whole = new Map([[ref.pool, 'all' as const]])
  const sight = await shop.view.read(whole, shop.channel, ctx)
  return [...sight.members.values()].some(({ row }) => row.backupServers > 0 && row.active > 0)
}
