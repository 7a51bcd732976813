import { refusal } from '../../../kit/errors.js'
import { until } from '../../../kit/until.js'
import type { Clock } from '../../../provider/clock.js'
import type { CallContext, Change, ChangeResult } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { quote } from '../../../provider/quote.js'
import type { ClusterRows } from '../codec/admin.js'
import type { Assignment } from '../codec/assignment.js'
import type { ProxyView } from '../session/roster.js'
import { rowsOf } from '../read/hosts.js'
import { planChange, rejected, type PlanContext, type WantedChange } from './plan.js'
import { NotPublished, Superseded, type EndpointSink, type Published } from '../sources/sink.js'
import type { EdsStatus } from '../codec/status.js'

/** How long a publication waits for the proxies' answer before it counts as given. */
const ANSWER = 500
/** How long a removal waits for the connections that it would otherwise leak. */
const EMPTY = 5_000
/** How long a removal waits for the proxies to take it; a poll of REST may be that far away. */
const TAKEN = 10_000
/** How often a change is planned anew because the set was changed in between. */
const ATTEMPTS = 5

export interface ApplyContext extends PlanContext {
  readonly sink: EndpointSink
  /** Asks every proxy. */
  readonly look: () => Promise<readonly ProxyView[]>
  /** Reads the sets again. */
  readonly reload: () => Promise<void>
  /** Takes the results of a set as soon as it is done. */
  readonly handUp: (index: number, result: ChangeResult) => void
  readonly clock: Clock
  readonly signal: AbortSignal
}

/**
 * All changes of one call: each set is published once however many of its members change.
 *
 * A set that every proxy refuses is taken back, and its changes are rejected with Envoy's words.
 */
export async function applyChanges(
  changes: readonly WantedChange[],
  context: ApplyContext,
): Promise<readonly ChangeResult[]> {
  const results = new Array<ChangeResult>(changes.length)
  const views = needsLook(changes) ? await context.look() : []
  for (const service of new Set(changes.map((change) => change.service))) {
    const mine = changes.flatMap((wanted, i) => (wanted.service === service ? [{ wanted, i }] : []))
    const found = await applyToSet(service, mine, views, context)
    for (const [i, result] of found) {
      results[i] = result
      context.handUp(i, result)
    }
  }
  return results
}

/**
 * Waits until no proxy that can be read lists members that were left out: only then they are gone. One that
 * keeps a row until its check fails has taken the removal too, and a set may come to it late: the wait has an end.
 */
export async function leftOut(
  removed: readonly WantedChange[],
  { look, clock, signal }: Pick<ApplyContext, 'look' | 'clock' | 'signal'>,
): Promise<void> {
  if (removed.length === 0) return
  await until({ clock, signal }, { every: 50, within: TAKEN }, async () => {
    const views = await look().catch((error: unknown) => {
      if (signal.aborted || !isDrainableError(error)) throw error
      return [] // no proxy answers, and so none lists it
    })
    const isListed = removed.some(({ service, member }) =>
      views
        .flatMap((view) => rowsOf(view, service))
        .some(({ hosts }) => hosts.get(member)?.pendingRemoval === false),
    )
    return isListed ? undefined : true
  })
}

/** The changes of one set, planned anew where another writer was faster. */
async function applyToSet(
  service: string,
  mine: readonly { readonly wanted: WantedChange; readonly i: number }[],
  views: readonly ProxyView[],
  context: ApplyContext,
): Promise<ReadonlyMap<number, ChangeResult>> {
  const marks: Marks = new Map()
  for (let attempt = 1; ; attempt++) {
    const results = new Map<number, ChangeResult>()
    const before = context.store.set(service)
    const pending: { wanted: WantedChange; i: number }[] = []
    const leaving = new Set<string>()
    let next = before
    for (const { wanted, i } of mine) {
      const plan = planChange(wanted, next, views, context)
      if ('result' in plan) {
        results.set(i, plan.result)
        continue
      }
      next = plan.next
      pending.push({ wanted, i })
      if (plan.leaves !== undefined) leaving.add(plan.leaves)
    }
    const ended = (made: (wanted: WantedChange) => ChangeResult): void => {
      for (const { wanted, i } of pending) results.set(i, made(wanted))
    }
    try {
      if (before !== undefined && next !== undefined && pending.length > 0) {
        const refusal = await publish(before, next, leaving, marks, views, context)
        ended((wanted) =>
          refusal === undefined
            ? { ref: wanted.ref, status: 'applied' }
            : rejected(wanted, refusal.code, refusal.message, refusal),
        )
      }
    } catch (error) {
      if (!(error instanceof Superseded)) throw error
      if (attempt < ATTEMPTS) {
        await context.reload()
        continue
      }
      const message = `endpoint set '${service}' is changed by another writer again and again, nothing was published`
      ended((wanted) => rejected(wanted, 'CONFLICT', message))
    }
    const refused = [...results].filter(([, { status }]) => status === 'rejected')
    const marked = refused.filter(([i]) =>
      mine.some((one) => one.i === i && marks.has(one.wanted.member)),
    )
    const left = marked.length === 0 ? undefined : await unmark(service, marks, context)
    if (left !== undefined) for (const [i, result] of marked) results.set(i, ofMarked(result, left))
    return results
  }
}

/** Endpoints that we marked UNHEALTHY so that they can leave, with their statuses before. */
type Marks = Map<string, EdsStatus>

/** A removal that is refused leaves no mark behind. Returns why some keep it; undefined: none does. */
async function unmark(
  service: string,
  marks: Marks,
  { store, reload, signal }: ApplyContext,
): Promise<string | undefined> {
  try {
    await reload()
    const set = store.set(service)
    const marked = (set?.endpoints ?? []).flatMap(({ member = '', status }) => {
      const before = status === 'UNHEALTHY' ? marks.get(member) : undefined
      return before === undefined ? [] : [[member, before] as const]
    })
    if (set !== undefined && marked.length > 0)
      await store.publish(set.withStatus(new Map(marked)), set, signal)
    return undefined
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof Superseded) return 'the set is changed by another writer'
    if (error instanceof NotPublished || isDrainableError(error)) return error.message
    throw error
  }
}

function ofMarked(result: ChangeResult, left: string): ChangeResult {
  if (!('error' in result)) return result
  const { ref, error } = result
  const words = `${error.message}; it was marked UNHEALTHY before, which could not be undone: ${left}`
  const data = { ref, provider: 'envoy', retryable: error.retryable, cause: error }
  return { ref, status: 'unknown', error: new DrainableError(error.code, words, data) }
}

function needsLook(changes: readonly WantedChange[]): boolean {
  return changes.some(({ change }) => change.kind === 'hold' || change.kind === 'remove')
}

/** Publishes, and takes back what every proxy refused. Returns why nothing changed; throws where that is not known. */
async function publish(
  before: Assignment,
  next: Assignment,
  leaving: ReadonlySet<string>,
  marks: Marks,
  views: readonly ProxyView[],
  context: ApplyContext,
): Promise<DrainableError | undefined> {
  const { store, signal } = context
  let published: Published
  try {
    let standing = before
    if (leaving.size > 0) {
      const prepared = await prepareRemoval(before, leaving, marks, views, context)
      if (isDrainableError(prepared)) return prepared
      standing = prepared
    }
    published = await store.publish(next, standing, signal)
  } catch (error) {
    if (error instanceof NotPublished) return error.error
    throw error
  }
  const refused = await answer(next.cluster, published.seq, context)
  if (refused === undefined) return undefined
  await store.publish(before, published.set, signal)
  return new DrainableError('REJECTED', refused, { provider: 'envoy' })
}

/**
 * What must be so before an endpoint is left out: the set that stands then, or why it cannot be.
 *
 * With active checks a removed endpoint whose check still passes stays, and keeps getting new work
 * if it is not drained; UNHEALTHY first makes it go at once. Where the cluster closes connections on
 * every change of its set, a removal leaks the connections that are still open: it waits for none.
 */
async function prepareRemoval(
  before: Assignment,
  leaving: ReadonlySet<string>,
  marks: Marks,
  views: readonly ProxyView[],
  context: ApplyContext,
): Promise<DrainableError | Assignment> {
  const service = before.cluster
  const configs = context.reader.configs(views, service)
  if (configs.some((config) => config.closeOnSetChange)) {
    const isEmpty = (clusters: readonly ClusterRows[]): boolean =>
      connectionsOf(clusters, leaving) === 0
    const times = { every: 50, within: EMPTY }
    const open = connectionsOf(await lookUntil(service, context, times, isEmpty), leaving)
    if (open > 0) {
      return new DrainableError(
        'CONFLICT',
        `endpoint set '${service}': ${[...leaving].join(', ')} still has ${open} connections, and the cluster has close_connections_on_host_set_change: Envoy would leak them; drain first, or wait for them to close`,
        { provider: 'envoy' },
      )
    }
  }
  const known = views.every((view) => view.proxy?.facts !== undefined)
  const lingers = configs.some((config) => config.activeChecks && !config.ignoreHealthOnRemoval)
  if (known && !lingers) return before
  // Not where it would let sticky sessions in: then the row lingers, drained.
  const isDrained = before.endpoints.every(
    ({ member, status }) => member === undefined || !leaving.has(member) || status === 'DRAINING',
  )
  if (isDrained && configs.some((config) => config.stickyWhileUnhealthy)) return before
  const edits = new Map<string, EdsStatus>([...leaving].map((member) => [member, 'UNHEALTHY']))
  const unhealthy = before.withStatus(edits)
  // Not where it would put the cluster into panic: then the row lingers, drained, until its check fails.
  const panics = [...leaving].some(
    (member) => context.reader.panic(unhealthy, views, member) !== undefined,
  )
  if (panics) return before
  const { seq, set } = await context.store.publish(unhealthy, before, context.signal)
  for (const { member = '', status = 'UNKNOWN' } of before.endpoints)
    if (leaving.has(member) && !marks.has(member)) marks.set(member, status)
  await seenUnhealthy(service, leaving, seq, context)
  return set
}

/** A file is read as it is when Envoy looks: two in a row could be seen as one. */
async function seenUnhealthy(
  service: string,
  leaving: ReadonlySet<string>,
  seq: number,
  context: ApplyContext,
): Promise<void> {
  if (context.sink.kind === 'grpc') {
    await answer(service, seq, context)
    return
  }
  await lookUntil(service, context, { every: 20, within: ANSWER }, (clusters) =>
    clusters.every(({ hosts }) =>
      [...leaving].every((member) => (hosts.get(member)?.eds ?? 'UNHEALTHY') === 'UNHEALTHY'),
    ),
  )
}

/** Looks until the clusters of a set are as wanted, or for so long. Returns what they were last. */
async function lookUntil(
  service: string,
  { look, clock, signal }: ApplyContext,
  { every, within }: { readonly every: number; readonly within: number },
  isSo: (clusters: readonly ClusterRows[]) => boolean,
): Promise<readonly ClusterRows[]> {
  let clusters: readonly ClusterRows[] = []
  await until({ clock, signal }, { every, within }, async () => {
    clusters = (await look()).flatMap((view) => rowsOf(view, service))
    return isSo(clusters) || undefined
  })
  return clusters
}

function connectionsOf(clusters: readonly ClusterRows[], members: ReadonlySet<string>): number {
  return clusters
    .flatMap(({ hosts }) => [...members].map((member) => hosts.get(member)?.connections ?? 0))
    .reduce((sum, open) => sum + open, 0)
}

/**
 * Waits a moment for what the proxies say to a publication. Returns Envoy's words where no proxy took
 * it and one refused it; silence is no refusal, the receipts tell the rest.
 */
async function answer(
  service: string,
  seq: number,
  { sink, clock, signal }: ApplyContext,
): Promise<string | undefined> {
  if (sink.subscribers === undefined || sink.kind !== 'grpc') return undefined
  const said = (): { readonly over: boolean; readonly refusal: string | undefined } => {
    const receipts = sink.subscribers?.of(service) ?? []
    const taken = receipts.filter((receipt) => receipt.ackedAt(seq) !== undefined)
    const refused = receipts.filter((receipt) => (receipt.refused ?? -1) >= seq)
    const answered = new Set([...taken, ...refused])
    const waiting = receipts.filter(
      (receipt) => receipt.state !== 'disconnected' && !answered.has(receipt),
    )
    const over = waiting.length === 0
    if (refused.length === 0 || taken.length > 0) return { over, refusal: undefined }
    const names = refused.map(({ node }) => node).join(', ')
    const words = `endpoint set '${service}' was refused by ${names} and taken back: "${refused[0]?.error ?? ''}"`
    return { over, refusal: words }
  }
  await until({ clock, signal }, { every: 5, within: ANSWER }, () => said().over || undefined)
  return said().refusal
}

/**
 * Changes of what another control plane owns: none is made. A hold of a member that is drained already finds what it
 * asks for.
 */
export function refuseChanges(
  changes: readonly Change[],
  isDrained: (change: Change) => boolean,
  ctx: CallContext,
): readonly ChangeResult[] {
  return changes.map((change, i) => {
    const { ref, kind } = change
    const isSo = kind === 'hold' && change.to === 'drain' && isDrained(change)
    const words = `${quote(formatRef(ref))}: observedEndpoints() only looks, another control plane owns the endpoints: drain there and watch() here, or hand its own way over with callbackEndpoints()`
    const error = refusal('UNSUPPORTED', words, { provider: 'envoy', ref }, false)
    const result: ChangeResult = isSo
      ? { ref, status: 'unchanged' }
      : { ref, status: 'rejected', error }
    ctx.result?.(i, result)
    return result
  })
}
