import { carefulApply } from '../../../kit/careful-apply.js'
import type { CarefulAdapter, ChangeOf, ChangeOutcome, Later } from '../../../kit/change.js'
import { keepServing, orderOf } from '../../../kit/haproxy/followers.js'
import { Turnstile } from '../../../kit/turnstile.js'
import { abortable } from '../../../provider/abort.js'
import type { CallContext, Change, ChangeResult, MemberRef } from '../../../provider/contract.js'
import { formatRef, refKey } from '../../../provider/member-ref.js'
import { isName } from '../codec/paths.js'
import type { ConfigView } from '../read/configured.js'
import type { Found, RuntimeView } from '../read/read.js'
import { identify, serves, storedHold, toPoolReading } from '../read/reading.js'
import { held, serving } from '../read/state.js'
import { isLost, PROVIDER } from '../session/session.js'
import { DurableMarks } from './durable.js'
import { Membership } from './membership.js'
import { Restorer } from './restore.js'
import { askServer, failure, find, known, type Seen, type Sent, type Tools } from './tools.js'
import { Verifier } from './verify.js'

/** Makes changes, one call after the other: every change is between two looks at both sources. */
export class Changer {
  readonly #by: By
  readonly #turn = new Turnstile()
  /** Why what is drained was not raised to maint, for good. */
  readonly #unsealed = new Map<string, string>()

  constructor(tools: Tools) {
    const marks = new DurableMarks(tools)
    const restorer = new Restorer(tools)
    const verifier = new Verifier(tools, restorer)
    const membership = new Membership(tools)
    this.#by = { tools, marks, restorer, verifier, membership, held: new Set() }
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    ctx.signal.throwIfAborted()
    const run = this.#turn.run(ctx.signal, () => this.#inOrder(changes, ctx))
    return abortable(run, ctx.signal)
  }

  async #inOrder(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    const order = orderOf(changes, this.#by.tools.followers)
    const all: ChangeResult[] = []
    const before = new Set(this.#by.held)
    const result = (place: number, one: ChangeResult): void => {
      const i = order[place] ?? place
      all[i] = one
      this.#note(changes[i], one, before)
      ctx.result?.(i, one)
    }
    const ordered = order.flatMap((i) => changes[i] ?? [])
    await carefulApply(changesBy(this.#by), ordered, { ...ctx, result })
    return all
  }

  /** Why a drained server is not sealed; undefined where that was not refused. */
  unsealed(ref: MemberRef): string | undefined {
    const why = this.#unsealed.get(refKey(ref))
    return why === undefined ? undefined : `it is not sealed: ${why}`
  }

  /** What is held no longer is to pass the checks again: one that was given back, and a first hold that was refused. */
  #note(change: Change | undefined, result: ChangeResult, before: ReadonlySet<string>): void {
    if (change === undefined || change.kind === 'terminate') return
    const key = refKey(change.ref)
    const { status } = result
    this.#unsealed.delete(key)
    const isSeal = change.kind === 'hold' && change.to === 'maint' && before.has(key)
    if (isSeal && status === 'rejected' && !result.error.retryable)
      this.#unsealed.set(key, result.error.message)
    const kept =
      change.kind === 'hold' ? status !== 'rejected' || before.has(key) : status === 'rejected'
    if (!kept) this.#by.held.delete(key)
  }
}

/** What changes are made by. */
interface By {
  readonly tools: Tools
  readonly marks: DurableMarks
  readonly restorer: Restorer
  readonly verifier: Verifier
  readonly membership: Membership
  /** What was held through this provider and not given back, past all checks: a hold of it takes nothing more. */
  readonly held: Set<string>
}

type Step = ChangeOutcome | Later<Sent>

/**
 * What the API is sent for the changes of one call, by their kinds. A state is set at run time first, and shown by the
 * next look; what belongs to it in the configuration is written after that.
 */
function changesBy(by: By): CarefulAdapter<Seen, Sent | 'removal'> {
  const { tools, marks, restorer, verifier, membership, held: ours } = by
  const { api, settings } = tools
  // Looked at now: what a lost answer has done, and once the server that it tracks is drained, its own can't be seen.
  const endOf = (sent: Sent, ctx: CallContext): Step | Promise<Step> => {
    const { lost, refused, exactly, before } = sent
    const canWait = lost === undefined && refused?.retryAfter === undefined
    return canWait && (exactly || before.found.row.tracked === undefined)
      ? { later: sent }
      : verifier.one(sent, ctx)
  }
  let view: RuntimeView | undefined
  let followers: RuntimeView | undefined
  return {
    provider: PROVIDER,
    absent: ({ ref }) =>
      isNamed(ref) ? `backend ${ref.pool} has no server ${ref.member}` : noSuchName(ref),
    async look(changes, ctx) {
      const named = changes.filter(({ ref }) => isNamed(ref))
      if (named.length === 0) return () => undefined
      const refs = named.map(({ ref }) => ref)
      const first = named.filter(({ kind, ref }) => kind === 'hold' && !ours.has(refKey(ref)))
      const seen = await tools.reader.view(refs, ctx, first.length > 0)
      tools.memory.note(seen, ctx.clock.now())
      const config = await tools.configuration.at(seen, ctx)
      const along =
        settings.keepFollowers === 0 ? [] : first.flatMap(({ ref }) => tools.followers.of(ref))
      followers = along.length === 0 ? undefined : await tools.reader.view(along, ctx)
      view = seen
      return (change) => {
        const found = find(seen, change.ref)
        return found && toSeen(change, found, seen, config)
      }
    },
    // Ready at run time is not all that was asked for where the file has a mark.
    isSo: (change, { config }, same) =>
      same && !(takesMarksBack(change) && storedHold(config, settings.durable) !== undefined),
    async hold({ ref, to }, seen, ctx) {
      if (!ours.has(refKey(ref))) {
        if (followers !== undefined && seen.found.verdict.own === 'ready')
          keepFollowers(tools, ref, followers)
        marks.assertPossible(seen)
      }
      ours.add(refKey(ref))
      const answer = await askServer(api, ref, to, ctx)
      const file = settings.durable ? () => marks.set(seen, to, ctx) : undefined
      const sent = { before: seen, wished: to, exactly: false, file, ...answer }
      return endOf(sent, ctx)
    },
    async restore(change, seen, ctx) {
      const stored = takesMarksBack(change) ? storedHold(seen.config, settings.durable) : undefined
      if (stored !== undefined && !settings.durable) throw keepsMarks(change.ref, stored)
      const wished = marks.wished(change, seen)
      const opened = await restorer.open(seen, wished, ctx)
      const undo = (anew: boolean) => () => marks.takeBack(seen, change, ctx, anew)
      const files = settings.durable ? { file: undo(false), again: undo(true) } : {}
      return endOf({ before: seen, wished, exactly: true, ...files, ...opened }, ctx)
    },
    terminate:
      settings.maintCuts === true
        ? (_, seen, ctx) => terminate(by, seen, ctx)
        : "the Data Plane API has no call that cuts connections; use drainable/haproxy-runtime, or onTimeout: 'proceed'",
    remove: (_, seen, ctx) =>
      settings.membership === 'configuration' ? { later: 'removal' } : removeNow(by, seen, ctx),
    add: (change, _, ctx) => {
      if (!isNamed(change.ref) || view === undefined)
        throw failure(change.ref, 'NOT_FOUND', noSuchName(change.ref))
      return membership.add(change, view, ctx)
    },
    async *finish(begun, ctx) {
      const states = begun.flatMap((one) =>
        one.later === 'removal' ? [] : [[one, one.later] as const],
      )
      yield* verifier.settled(states, ctx)
      const removals = begun.filter(({ later }) => later === 'removal')
      if (removals.length === 0 || view === undefined) return
      for await (const [one, result] of membership.takeOut(removals, view, ctx)) {
        if (result !== 'run time') yield [one, result]
        else if (one.found !== undefined) yield [one, await removeNow(by, one.found, ctx)]
      }
    },
  }
}

/** The API puts a server into maint before it deletes it; where it then refuses, it stays there. */
async function removeNow(
  { membership, restorer }: By,
  seen: Seen,
  ctx: CallContext,
): Promise<ChangeOutcome> {
  try {
    return await membership.remove(seen.ref, ctx)
  } catch (thrown) {
    const error = known(thrown, ctx)
    if (isLost(error)) throw error
    return restorer.back({ before: seen }, error, ctx)
  }
}

/**
 * Where maint cuts, going to maint and back is how to terminate; nothing else in this API cuts.
 * The number is the load of the look before: an upper bound.
 */
async function terminate(
  { tools: { api }, restorer }: By,
  seen: Seen,
  ctx: CallContext,
): Promise<Step> {
  const { ref, found } = seen
  const { own } = found.verdict
  const { scur: load, status } = found.row
  if (load === 0) return { status: 'unchanged', terminated: 0 }
  if (own === 'maint' || own === 'unknown') {
    const words = `${formatRef(ref)} holds ${load} under '${status}': the Data Plane API can cut them only by maint; use drainable/haproxy-runtime`
    throw failure(ref, 'UNSUPPORTED', words)
  }
  const { lost, refused } = await askServer(api, ref, 'maint', ctx)
  if (lost !== undefined) throw lost
  if (refused !== undefined) return restorer.back({ before: seen }, refused, ctx)
  const answer = await askServer(api, ref, own, ctx)
  return { later: { before: seen, wished: own, exactly: true, terminated: load, ...answer } }
}

/** Whether a change asks for what a ready server still has in the file to be taken back. */
function takesMarksBack(change: Change): change is ChangeOf<'restore'> {
  return change.kind === 'restore' && change.expect === 'ready' && change.to === 'ready'
}

/** Ready at run time, and marked in the file, which this provider does not write. */
function keepsMarks(ref: MemberRef, stored: 'drain' | 'maint'): Error {
  const words = `is ready until the next reload, which makes it '${stored}': the configuration has weight 0 for it; use a provider with durable: true, or give it a weight there`
  return failure(ref, 'UNSUPPORTED', `${formatRef(ref)} ${words}`)
}

/**
 * A state that can't be told is no reason to refuse a hold, unless a maintenance of its own may be
 * hidden: a drain could lower that, and nothing is sent for maint. An undo waits until the server that
 * this one tracks is ready: only then it can be seen.
 */
function toSeen(change: Change, found: Found, view: RuntimeView, config: ConfigView): Seen {
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
    ref: change.ref,
    found,
    view,
    config: config.server(change.ref),
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
function keepFollowers({ settings, followers }: Tools, ref: MemberRef, view: RuntimeView): void {
  const along = followers.of(ref)
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
