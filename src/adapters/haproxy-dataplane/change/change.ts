import { carefulApply } from '../../../kit/careful-apply.js'
import type { CarefulAdapter, ChangeOf, Later, SeenMember } from '../../../kit/change.js'
import { keepServing, orderOf } from '../../../kit/haproxy/followers.js'
import { HeldMembers } from '../../../kit/haproxy/held.js'
import { Turnstile } from '../../../kit/turnstile.js'
import { abortable } from '../../../provider/abort.js'
import type { CallContext, Change, ChangeResult, MemberRef } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import { formatRef, refKey } from '../../../provider/member-ref.js'
import { isName } from '../codec/paths.js'
import type { Found, RuntimeView } from '../read/read.js'
import { identify, serves, storedHold, toPoolReading } from '../read/reading.js'
import { held, serving } from '../read/state.js'
import { isLost, PROVIDER } from '../session/session.js'
import { assertAddress, Membership } from './membership.js'
import { Restorer } from './restore.js'
import {
  about,
  askServer,
  extended,
  failure,
  isDone,
  known,
  type Sent,
  type Step,
  thrown,
  type Tools,
  type Underway,
  Undo,
  wishOf,
} from './sent.js'
import { Verifier } from './verify.js'

/** A server as found, as the rules of a change see it. */
export interface Seen extends SeenMember {
  readonly found: Found
  readonly view: RuntimeView
  /** What the file makes of it at the next reload: looked for where a ready server is to be made ready. */
  readonly stored?: 'drain' | 'maint'
}

/** Makes changes, one call after the other: every change is between two looks at both sources. */
export class Changer {
  readonly #by: By
  readonly #turn = new Turnstile()
  /** Why what is drained was not raised to maint, for good. */
  readonly #unsealed = new Map<string, string>()

  constructor(tools: Tools) {
    const restorer = new Restorer(tools)
    const verifier = new Verifier(tools, restorer)
    const membership = new Membership(tools)
    this.#by = { ...tools, restorer, verifier, membership, held: new HeldMembers() }
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    ctx.signal.throwIfAborted()
    const run = this.#turn.run(ctx.signal, () => this.#inOrder(changes, ctx))
    return abortable(run, ctx.signal)
  }

  async #inOrder(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    const order = orderOf(changes, this.#by.followers)
    const all: ChangeResult[] = []
    const note = this.#by.held.begin()
    const result = (place: number, one: ChangeResult): void => {
      const i = order[place] ?? place
      all[i] = one
      const change = changes[i]
      if (change !== undefined) {
        note(change, one)
        this.#noteSeal(change, one)
      }
      ctx.result?.(i, one)
    }
    const ordered = order.flatMap((i) => changes[i] ?? [])
    try {
      const results = await carefulApply(changesBy(this.#by), ordered, { ...ctx, result })
      for (const [place, one] of results.entries()) all[order[place] ?? place] = one
      return all
    } finally {
      const now = ctx.clock.now()
      for (const [i, { ref }] of changes.entries())
        this.#by.api.unresolved.ended(ref, all[i]?.status, now)
    }
  }

  /** Why a drained server is not sealed; undefined where that was not refused. */
  unsealed(ref: MemberRef): string | undefined {
    const why = this.#unsealed.get(refKey(ref))
    return why === undefined ? undefined : `it is not sealed: ${why}`
  }

  /** What is held already, and was to be raised. */
  #noteSeal(change: Change, result: ChangeResult): void {
    if (change.kind === 'terminate') return
    const key = refKey(change.ref)
    this.#unsealed.delete(key)
    const isSeal = change.kind === 'hold' && change.to === 'maint' && this.#by.held.has(change.ref)
    if (isSeal && result.status === 'rejected' && !result.error.retryable)
      this.#unsealed.set(key, result.error.message)
  }
}

/** What changes are made by. */
interface By extends Tools {
  readonly restorer: Restorer
  readonly verifier: Verifier
  readonly membership: Membership
  readonly held: HeldMembers
}

/** What the API is sent for the changes of one call, by their kinds. */
function changesBy(by: By): CarefulAdapter<Seen, Sent | 'removal'> {
  const { settings, restorer, verifier, membership } = by
  let view: RuntimeView | undefined
  return {
    provider: PROVIDER,
    absent: ({ ref }) =>
      isNamed(ref) ? `backend ${ref.pool} has no server ${ref.member}` : noSuchName(ref),
    async look(changes, ctx) {
      const named = changes.filter(({ ref }) => isNamed(ref))
      if (named.length === 0) return () => undefined
      view = await look(by, named, ctx)
      return seenIn(view, await storedOf(by, named, view, ctx))
    },
    // Ready at run time is not all that was asked for where the file has a mark.
    isSo: (change, { stored }, same) => same && !(stored !== undefined && takesMarksBack(change)),
    hold: (change, seen, ctx) => hold(by, change, seen, ctx),
    restore: (change, seen, ctx) => {
      if (seen.stored !== undefined && !settings.durable) throw keepsMarks(change.ref, seen.stored)
      const hasMarks = seen.stored !== undefined
      return guarded(by, change, seen, ctx, (at) => restorer.restore(change, at, hasMarks, ctx))
    },
    terminate:
      settings.maintCuts === true
        ? (change, seen, ctx) => terminate(by, change, seen, ctx)
        : "the Data Plane API has no call that cuts connections; use drainable/haproxy-runtime, or onTimeout: 'proceed'",
    remove: (change, seen, ctx) =>
      settings.membership === 'configuration'
        ? { later: 'removal' }
        : removeNow(by, change, seen, ctx),
    add: (change, _, ctx) => {
      if (isNamed(change.ref) && view !== undefined) return membership.add(change, view, ctx)
      throw failure(change.ref, 'NOT_FOUND', noSuchName(change.ref))
    },
    async *finish(begun, ctx) {
      const sent = new Map<Sent, (typeof begun)[number]>()
      const removals = new Map<MemberRef, (typeof begun)[number]>()
      for (const one of begun)
        if (one.later === 'removal') removals.set(one.change.ref, one)
        else sent.set(one.later, one)
      for await (const [of, result] of verifier.settled([...sent.keys()], ctx)) {
        const one = sent.get(of)
        if (one !== undefined) yield [one, result]
      }
      if (removals.size === 0 || view === undefined) return
      for await (const [ref, result] of membership.takeOut([...removals.keys()], view, ctx)) {
        const one = removals.get(ref)
        if (one?.found === undefined) continue
        const isLeft = result === 'run time'
        yield [one, isLeft ? await removeNow(by, one.change, one.found, ctx) : result]
      }
    },
  }
}

async function look(
  { memory, reader, held }: By,
  changes: readonly Change[],
  ctx: CallContext,
): Promise<RuntimeView> {
  const isFirst = changes.some(({ kind, ref }) => kind === 'hold' && !held.has(ref))
  const refs = changes.map(({ ref }) => ref)
  const view = await reader.view(refs, ctx, isFirst)
  memory.note(view, ctx.clock.now())
  return view
}

type Stored = ReadonlyMap<Change, 'drain' | 'maint' | undefined>

/** What the file makes of the servers whose marks are to be taken back. */
async function storedOf(
  { configuration, settings }: By,
  changes: readonly Change[],
  view: RuntimeView,
  ctx: CallContext,
): Promise<Stored> {
  const stored = new Map<Change, 'drain' | 'maint' | undefined>()
  for (const change of changes.filter(takesMarksBack)) {
    const configured = await configuration.of(change.ref, view, ctx)
    stored.set(change, storedHold(configured, settings.durable))
  }
  return stored
}

function seenIn(view: RuntimeView, stored: Stored): (change: Change) => Seen | undefined {
  return (change) => {
    if (change.kind === 'add') assertAddress(change)
    const found = view.pools.get(change.ref.pool)?.get(change.ref.member)
    if (found === undefined) return undefined
    const marked = stored.get(change)
    return { ...toSeen(change, found, view), ...(marked === undefined ? {} : { stored: marked }) }
  }
}

async function hold(by: By, change: ChangeOf<'hold'>, seen: Seen, ctx: CallContext): Promise<Step> {
  const { ref, to } = change
  const { api, marks, verifier, held } = by
  const { found, view } = seen
  try {
    // Nothing is sent before it is known what stands against a first hold, and that is asked for again until it is.
    if (!held.has(ref)) {
      if (found.verdict.own === 'ready') await keepFollowers(by, ref, ctx)
      await marks.assertPossible(ref, view, ctx)
    }
  } catch (error) {
    return unsent(ref, known(error, ctx))
  }
  held.add(ref)
  return guarded(by, change, seen, ctx, async (at) => {
    await marks.hold(at, to, ctx)
    const answer = await askServer(api, ref, to, ctx)
    const sent = { ...at, wished: to, exactly: false, ...answer }
    // Looked at now: once the server that it tracks is drained, its own drain can't be seen.
    return found.row.tracked === undefined ? { later: sent } : verifier.one(sent, ctx)
  })
}

/** The API puts a server into maint before it deletes it; where it then refuses, it stays there. */
async function removeNow(
  { membership, restorer }: By,
  { ref }: Change,
  seen: Seen,
  ctx: CallContext,
): Promise<ChangeResult> {
  const result = await membership
    .remove(ref, ctx)
    .catch((error: unknown) => thrown(ref, known(error, ctx)))
  if (result.status !== 'rejected') return result
  return restorer.refuse(underway(ref, seen), result.error, ctx)
}

/** What was done of a change that is then refused is put back; one whose answer was lost is looked at. */
async function guarded(
  { restorer, verifier }: By,
  change: ChangeOf<'hold' | 'restore'>,
  seen: Seen,
  ctx: CallContext,
  work: (at: Underway) => Promise<Step>,
): Promise<Step> {
  const at = underway(change.ref, seen)
  try {
    return await work(at)
  } catch (thrown) {
    const error = about(change.ref, known(thrown, ctx))
    if (!isLost(error)) {
      if (at.undo.isEmpty) throw error
      return restorer.refuse(at, error, ctx)
    }
    const wished = wishOf(change)
    // in the wished state before: what was lost is a mark or a weight, and no look at it shows that
    if (isDone(wished, at.before.verdict.own)) throw error
    return verifier.one({ ...at, ...wished, lost: error }, ctx)
  }
}

/**
 * Where maint cuts, going to maint and back is how to terminate; nothing else in this API cuts.
 * The number is the load of the look before: an upper bound.
 */
async function terminate(
  { api, restorer }: By,
  { ref }: Change,
  seen: Seen,
  ctx: CallContext,
): Promise<ChangeResult | Later<Sent>> {
  const { row, verdict } = seen.found
  const { own } = verdict
  const { scur: load, status } = row
  if (load === 0) return { ref, status: 'unchanged', terminated: 0 }
  if (own === 'maint' || own === 'unknown') {
    const words = `${formatRef(ref)} holds ${load} under '${status}': the Data Plane API can cut them only by maint; use drainable/haproxy-runtime`
    throw failure(ref, 'UNSUPPORTED', words)
  }
  const at = underway(ref, seen)
  const { refused } = await askServer(api, ref, 'maint', ctx)
  if (refused !== undefined) return restorer.refuse(at, about(ref, refused), ctx)
  const answer = await askServer(api, ref, own, ctx)
  return { later: { ...at, wished: own, exactly: true, terminated: load, ...answer } }
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

function underway(ref: MemberRef, { found, view }: Seen): Underway {
  return { ref, before: found, view, undo: new Undo() }
}

/**
 * A state that can't be told is no reason to refuse a hold, unless a maintenance of its own may be
 * hidden: a drain could lower that, and nothing is sent for maint. An undo waits until the server that
 * this one tracks is ready: only then it can be seen.
 */
function toSeen(change: Change, found: Found, view: RuntimeView): Seen {
  const { doubt } = found.verdict
  const own = held(found.verdict, found.row)
  const lifted = change.kind === 'hold' && own === 'unknown' && !hidesMaintenance(found)
  const behind = found.verdict.hidden === true && found.row.tracked
  const unseen = change.kind === 'restore' && behind
  return {
    ...identify(found),
    own: lifted ? 'ready' : unseen ? 'unknown' : own,
    ...(doubt === undefined ? {} : { doubt }),
    passing: true, // a name resolves again, a tracked server is made ready
    found,
    view,
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
