import type { CarefulAdapter, ChangeOf, Later } from '../../../kit/change.js'
import { keepServing, orderOf } from '../../../kit/haproxy/followers.js'
import { Turnstile } from '../../../kit/turnstile.js'
import { abortable } from '../../../provider/abort.js'
import type { CallContext, Change, ChangeResult, MemberRef } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { isName } from '../codec/paths.js'
import type { Found, RuntimeView } from '../read/read.js'
import { placeOf, serves, storedHold, toPoolReading } from '../read/reading.js'
import { held, serving } from '../read/state.js'
import { isLost } from '../session/session.js'
import { PROVIDER } from '../name.js'
import { add, remove, takeOut } from './membership.js'
import { refuse, restore } from './restore.js'
import {
  about,
  askServer,
  extended,
  failure,
  find,
  hasWritten,
  isDone,
  known,
  type Seen,
  type Sent,
  type Step,
  thrown,
  type Tools,
} from './tools.js'
import { verified, verifiedOne } from './verify.js'

/** Makes changes, one call after the other: every change is between two looks at both sources. */
export class Changer {
  readonly #by: Tools
  readonly #turn = new Turnstile()

  constructor(by: Tools) {
    this.#by = by
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    ctx.signal.throwIfAborted()
    const run = this.#turn.run(ctx.signal, () => this.#inOrder(changes, ctx))
    return abortable(run, ctx.signal)
  }

  async #inOrder(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    const { held, followers } = this.#by
    const order = orderOf(changes, followers)
    const result = (place: number, one: ChangeResult): void => {
      const [i] = order[place] ?? []
      if (i !== undefined) ctx.result?.(i, one)
    }
    const ordered = order.map(([, change]) => change)
    const results = await held.apply(changesBy(this.#by), ordered, { ...ctx, result })
    return results
      .map((one, place) => [order[place]?.[0] ?? place, one] as const)
      .sort(([i], [k]) => i - k)
      .map(([, one]) => one)
  }
}

/** What the API is sent for the changes of one call, by their kinds. */
function changesBy(by: Tools): CarefulAdapter<Seen, Sent | 'removal'> {
  const { settings } = by
  let view: RuntimeView | undefined
  return {
    provider: PROVIDER,
    absent: ({ ref }) =>
      isNamed(ref) ? `backend ${ref.pool} has no server ${ref.member}` : noSuchName(ref),
    async look(changes, ctx) {
      const named = changes.filter(({ ref }) => isNamed(ref))
      if (named.length === 0) return () => undefined
      const looked = await look(by, named, ctx)
      const file = named.some(takesMarksBack) ? await by.configuration.at(looked, ctx) : undefined
      view = looked
      return (change) => {
        const found = find(looked, change.ref)
        if (found === undefined) return undefined
        const configured = takesMarksBack(change) ? file?.of(change.ref) : undefined
        const stored = configured && storedHold(configured, settings.durable)
        return { ...toSeen(change, found), found, view: looked, stored, undo: {} }
      }
    },
    // Ready at run time is not all that was asked for where the file has a mark.
    isSo: (_, { stored }, same) => same && stored === undefined,
    hold: (change, seen, ctx) => hold(by, change, seen, ctx),
    restore: (change, seen, ctx) => {
      if (seen.stored !== undefined && !settings.durable) throw keepsMarks(change.ref, seen.stored)
      return guarded(by, change, seen, ctx, () => restore(by, change, seen, ctx))
    },
    terminate:
      settings.maintCuts === true
        ? (_, seen, ctx) => terminate(by, seen, ctx)
        : "the Data Plane API has no call that cuts connections; use drainable/haproxy-runtime, or onTimeout: 'proceed'",
    remove: (_, seen, ctx) =>
      settings.membership === 'configuration' ? { later: 'removal' } : removeNow(by, seen, ctx),
    add: (change, _, ctx) => {
      if (isNamed(change.ref) && view !== undefined) return add(by, change, view, ctx)
      throw failure(change.ref, 'NOT_FOUND', noSuchName(change.ref))
    },
    async *finish(begun, ctx) {
      const sent = new Map<Sent, (typeof begun)[number]>()
      const removals = new Map<MemberRef, (typeof begun)[number]>()
      for (const one of begun)
        if (one.later === 'removal') removals.set(one.change.ref, one)
        else sent.set(one.later, one)
      for await (const [of, result] of verified(by, [...sent.keys()], ctx)) {
        const one = sent.get(of)
        if (one !== undefined) yield [one, result]
      }
      if (removals.size === 0 || view === undefined) return
      for await (const [ref, result] of takeOut(by, [...removals.keys()], view, ctx)) {
        const one = removals.get(ref)
        if (one?.found === undefined) continue
        yield [one, result === 'run time' ? await removeNow(by, one.found, ctx) : result]
      }
    },
  }
}

async function look(
  { memory, reader, held }: Tools,
  changes: readonly Change[],
  ctx: CallContext,
): Promise<RuntimeView> {
  const isFirst = changes.some(({ kind, ref }) => kind === 'hold' && !held.has(ref))
  const refs = changes.map(({ ref }) => ref)
  const view = await reader.view(refs, ctx, isFirst)
  memory.note(view, ctx.clock.now())
  return view
}

async function hold(
  by: Tools,
  change: ChangeOf<'hold'>,
  seen: Seen,
  ctx: CallContext,
): Promise<Step> {
  const { ref, to } = change
  const { marks, held } = by
  const { verdict, row } = seen.found
  try {
    // Nothing is sent before it is known what stands against a first hold, and that is asked for again until it is.
    if (!held.has(ref)) {
      if (verdict.own === 'ready') await keepFollowers(by, ref, ctx)
      await marks.assertPossible(ref, seen.view, ctx)
    }
  } catch (error) {
    return unsent(ref, known(error, ctx))
  }
  held.add(ref)
  return guarded(by, change, seen, ctx, async () => {
    await marks.hold(seen, to, ctx)
    const answer = await askServer(by, ref, to, ctx)
    const sent = { ...seen, wished: to, exactly: false, ...answer }
    // Looked at now: once the server that it tracks is drained, its own drain can't be seen.
    return row.tracked === undefined ? { later: sent } : verifiedOne(by, sent, ctx)
  })
}

/** The API puts a server into maint before it deletes it; where it then refuses, it stays there. */
async function removeNow(by: Tools, seen: Seen, ctx: CallContext): Promise<ChangeResult> {
  const { ref } = seen
  const result = await remove(by, ref, ctx).catch((error: unknown) =>
    thrown(ref, known(error, ctx)),
  )
  return result.status === 'rejected' ? refuse(by, seen, result.error, ctx) : result
}

/** What was done of a change that is then refused is put back; one whose answer was lost is looked at. */
async function guarded(
  by: Tools,
  { ref, kind, to: wished }: ChangeOf<'hold' | 'restore'>,
  seen: Seen,
  ctx: CallContext,
  work: () => Promise<Step>,
): Promise<Step> {
  try {
    return await work()
  } catch (thrown) {
    const error = about(ref, known(thrown, ctx))
    if (!isLost(error)) {
      if (!hasWritten(seen)) throw error
      return refuse(by, seen, error, ctx)
    }
    const sent = { ...seen, wished, exactly: kind === 'restore', lost: error }
    // in the wished state before: what was lost is a mark or a weight, and no look at it shows that
    if (isDone(sent, seen.found.verdict.own)) throw error
    return verifiedOne(by, sent, ctx)
  }
}

/**
 * Where maint cuts, going to maint and back is how to terminate; nothing else in this API cuts.
 * The number is the load of the look before: an upper bound.
 */
async function terminate(
  by: Tools,
  seen: Seen,
  ctx: CallContext,
): Promise<ChangeResult | Later<Sent>> {
  const { ref, found } = seen
  const { own } = found.verdict
  const { scur: load, status } = found.row
  if (load === 0) return { ref, status: 'unchanged', terminated: 0 }
  if (own === 'maint' || own === 'unknown') {
    const words = `${formatRef(ref)} holds ${load} under '${status}': the Data Plane API can cut them only by maint; use drainable/haproxy-runtime`
    throw failure(ref, 'UNSUPPORTED', words)
  }
  const { refused } = await askServer(by, ref, 'maint', ctx)
  if (refused !== undefined) return refuse(by, seen, about(ref, refused), ctx)
  const answer = await askServer(by, ref, own, ctx)
  return { later: { ...seen, wished: own, exactly: true, terminated: load, ...answer } }
}

/** Ready at run time, and marked in the file, which this provider does not write. */
function keepsMarks(ref: MemberRef, stored: 'drain' | 'maint'): DrainableError {
  const words = `is ready until the next reload, which makes it '${stored}': the configuration has weight 0 for it; use a provider with durable: true, or give it a weight there`
  return failure(ref, 'UNSUPPORTED', `${formatRef(ref)} ${words}`)
}

/** Whether a change asks for what a ready server still has in the file to be taken back. */
function takesMarksBack(change: Change): boolean {
  return change.kind === 'restore' && change.expect === 'ready' && change.to === 'ready'
}

/** Refused by a check; or the check could not be made, and is made again. */
function unsent(ref: MemberRef, error: DrainableError): ChangeResult {
  if (!isLost(error)) return { ref, status: 'rejected', error: about(ref, error) }
  const words = `${formatRef(ref)} was not changed: ${error.message}`
  const retryable = error.code === 'MALFORMED_REPLY' || error.retryable
  return { ref, status: 'rejected', error: extended(ref, error, words, retryable) }
}

/**
 * A state that can't be told is no reason to refuse a hold, unless a maintenance of its own may be
 * hidden: a drain could lower that, and nothing is sent for maint. An undo waits until the server that
 * this one tracks is ready: only then it can be seen.
 */
function toSeen(
  { kind, ref }: Change,
  found: Found,
): Omit<Seen, 'found' | 'view' | 'stored' | 'undo'> {
  const { doubt } = found.verdict
  const own = held(found.verdict, found.row)
  const lifted = kind === 'hold' && own === 'unknown' && !hidesMaintenance(found)
  const behind = found.verdict.hidden === true && found.row.tracked
  const unseen = kind === 'restore' && behind
  return {
    ref,
    ...placeOf(found),
    own: lifted ? 'ready' : unseen ? 'unknown' : own,
    ...(doubt === undefined ? {} : { doubt }),
    passing: true, // a name resolves again, a tracked server is made ready
  }
}

/** Whether a maintenance of its own may be hidden. */
function hidesMaintenance({ row: { status } }: Found): boolean {
  return !/^(DRAIN|DOWN|NOLB)/.test(status) && !serving(status)
}

function isNamed({ pool, member }: MemberRef): boolean {
  return isName(pool) && isName(member)
}

function noSuchName(ref: MemberRef): string {
  return `${formatRef(ref)} can't exist: HAProxy's names are letters, digits and - _ . :`
}

/**
 * A drained server takes those that track it along.
 *
 * @throws `POOL_AT_MINIMUM` where that would leave too few in their backends
 */
async function keepFollowers(
  { reader, settings, followers }: Tools,
  ref: MemberRef,
  ctx: CallContext,
): Promise<void> {
  const along = followers.of(ref)
  if (along.length === 0 || settings.keepFollowers === 0) return
  const view = await reader.view(along, ctx)
  const least = settings.keepFollowers
  keepServing(ref, along, { factory: 'haproxyDataplane', provider: PROVIDER, least }, (pool) => {
    const members = view.pools.get(pool)
    const { serving } = toPoolReading(pool, view)
    const lost = [ref, ...along].filter((one) => {
      const found = one.pool === pool ? members?.get(one.member) : undefined
      return found !== undefined && serves(found, members)
    }).length
    return { serving, lost }
  })
}
