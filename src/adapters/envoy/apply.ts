import { pause, systemClock } from '../../provider/clock.js'
import type { Change, ChangeResult } from '../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../provider/error.js'
import { formatRef } from '../../provider/member-ref.js'
import { formatSocket } from './address.js'
import { AssignmentProblem, isEndpointNative, type Assignment } from './assignment.js'
import type { ProxyView } from './fleet.js'
import { rowsOf, type ClusterLens } from './lens.js'
import type { Wanted } from './provider.js'
import { NotPublished, Superseded, type EndpointSink } from './sink.js'
import { toAdminState, toEdsStatus, type EdsStatus } from './status.js'
import type { EndpointStore } from './store.js'

/** How long a publication waits for the proxies' answer before it counts as given. */
const ANSWER = 500
/** How long a removal waits for the connections that it would otherwise leak. */
const EMPTY = 5_000
/** How often a change is planned anew because the set was changed in between. */
const ATTEMPTS = 5

/** One change with the member it means. */
export interface WantedChange extends Wanted {
  readonly change: Change
}

export interface ApplyContext {
  readonly store: EndpointStore
  readonly sink: EndpointSink
  readonly lens: ClusterLens
  readonly onPanic: 'refuse' | 'allow'
  /** Asks every proxy. */
  readonly look: () => Promise<readonly ProxyView[]>
  /** Reads the sets again. */
  readonly reload: () => Promise<void>
  /** Takes the results of a set as soon as it is done. */
  readonly handUp: (index: number, result: ChangeResult) => void
  readonly signal: AbortSignal
}

/** What becomes of one change before anything is published. */
type Plan =
  { readonly result: ChangeResult } | { readonly next: Assignment; readonly leaves?: string }

/**
 * All changes of one call: each set is published once however many of its members change.
 *
 * A set that every proxy refuses is taken back, and its changes are rejected with Envoy's words.
 */
export async function applyChanges(
  changes: readonly WantedChange[],
  context: ApplyContext,
): Promise<readonly ChangeResult[]> {
  const results = new Array<ChangeResult | undefined>(changes.length)
  const views = needsLook(changes) ? await context.look() : []
  for (const service of new Set(changes.map((change) => change.service))) {
    const mine = changes.flatMap((wanted, i) => (wanted.service === service ? [{ wanted, i }] : []))
    const found = await applyToSet(service, mine, views, context)
    for (const [i, result] of found) {
      results[i] = result
      context.handUp(i, result)
    }
  }
  return results.map((result, i) => result ?? rejectedAs(changes[i], 'no result'))
}

/** The changes of one set, planned anew where somebody else was faster. */
async function applyToSet(
  service: string,
  mine: readonly { readonly wanted: WantedChange; readonly i: number }[],
  views: readonly ProxyView[],
  context: ApplyContext,
): Promise<ReadonlyMap<number, ChangeResult>> {
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
    if (before === undefined || next === undefined || pending.length === 0) return results
    try {
      const error = await publish(before, next, leaving, views, context)
      for (const { wanted, i } of pending) {
        results.set(
          i,
          error === undefined
            ? { ref: wanted.ref, status: 'applied' }
            : rejected(wanted, error.code, error.message, error),
        )
      }
      return results
    } catch (error) {
      if (!(error instanceof Superseded)) throw error
      if (attempt === ATTEMPTS) {
        const message = `endpoint set '${service}' is changed by somebody else again and again, nothing was published`
        for (const { wanted, i } of pending) results.set(i, rejected(wanted, 'CONFLICT', message))
        return results
      }
      await context.reload()
    }
  }
}

function needsLook(changes: readonly WantedChange[]): boolean {
  return changes.some(({ change }) => change.kind === 'hold' || change.kind === 'remove')
}

function planChange(
  wanted: WantedChange,
  set: Assignment | undefined,
  views: readonly ProxyView[],
  context: ApplyContext,
): Plan {
  const { change, service, member } = wanted
  if (set === undefined) {
    const names = context.store.names().join(', ')
    return reject(
      wanted,
      'NOT_FOUND',
      `cluster ${wanted.ref.pool} has no endpoint set here, there is ${names === '' ? 'none' : names}`,
    )
  }
  if (change.kind === 'add') return planAdd(wanted, change, set)
  const endpoint = set.endpoints.find((found) => found.member === member)
  if (endpoint === undefined) {
    return reject(wanted, 'NOT_FOUND', `endpoint set '${service}' has no endpoint ${member}`)
  }
  const identity = endpoint.hostname === undefined ? member : `${member} ${endpoint.hostname}`
  if (change.identity !== undefined && change.identity !== identity) {
    return reject(
      wanted,
      'CONFLICT',
      `${formatRef(wanted.ref)} is another endpoint now ('${identity}', not '${change.identity}'), nothing was touched`,
    )
  }
  const own = toAdminState(endpoint.status)
  switch (change.kind) {
    case 'hold': {
      if (change.to === 'maint') {
        return reject(
          wanted,
          'UNSUPPORTED',
          "Envoy has no maintenance state that keeps work: hold 'drain' (DRAINING), or remove the endpoint once it is idle",
        )
      }
      if (own === 'unknown') {
        return reject(
          wanted,
          'CONFLICT',
          `${formatRef(wanted.ref)} has a health status that this version does not know, it is not written over`,
        )
      }
      if (own === 'drain') return unchanged(wanted)
      const next = set.withStatus(new Map<string, EdsStatus>([[member, 'DRAINING']]))
      return panicPlan(wanted, next, views, context) ?? { next }
    }
    case 'restore': {
      if (change.to === 'maint' || change.expect === 'maint') {
        return reject(
          wanted,
          'UNSUPPORTED',
          'Envoy has no maintenance state to restore: restore drain or ready',
        )
      }
      if (own === change.to) return unchanged(wanted)
      if (own !== change.expect) {
        return reject(
          wanted,
          'CONFLICT',
          `${formatRef(wanted.ref)} is ${own}, not ${change.expect}: somebody else changed it, it is left alone`,
        )
      }
      const status = change.to === 'drain' ? 'DRAINING' : statusBefore(change.native)
      return { next: set.withStatus(new Map([[member, status]])) }
    }
    case 'terminate':
      return reject(
        wanted,
        'UNSUPPORTED',
        "Envoy cannot cut the work of one endpoint: wait longer, or stop the server itself, or use onTimeout 'proceed'",
      )
    case 'remove': {
      if (set.endpoints.length === 1) {
        return reject(
          wanted,
          'REJECTED',
          `${formatRef(wanted.ref)} is the last endpoint of '${service}': an empty set takes the cluster down, add another endpoint first`,
        )
      }
      return { next: set.without(new Set([member])), leaves: member }
    }
    default:
      return change satisfies never
  }
}

function planAdd(
  wanted: WantedChange,
  change: Extract<Change, { kind: 'add' }>,
  set: Assignment,
): Plan {
  const { address, port, weight } = change
  const native = isEndpointNative(change.native) ? change.native : undefined
  const name =
    address.startsWith('/') || address.startsWith('@') ? address : formatSocket(address, port)
  if (native === undefined && wanted.member !== name) {
    return reject(
      wanted,
      'INVALID_OPTIONS',
      `${formatRef(wanted.ref)}: an Envoy endpoint is named by its address, expected the member '${name}'`,
    )
  }
  if (set.endpoints.some((found) => found.member === wanted.member)) return unchanged(wanted)
  if (weight !== undefined && !(Number.isInteger(weight) && weight >= 1 && weight < 2 ** 32)) {
    return reject(
      wanted,
      'INVALID_OPTIONS',
      `${formatRef(wanted.ref)}: weight ${weight}, Envoy takes whole numbers from 1 on and rejects the whole set otherwise`,
    )
  }
  try {
    const next = set.withEndpoint({ address, port, weight, native })
    if (next.endpoints.some((found) => found.member === wanted.member)) return { next }
    return reject(wanted, 'INVALID_OPTIONS', `${formatRef(wanted.ref)}: native is another endpoint`)
  } catch (problem) {
    if (!(problem instanceof AssignmentProblem)) throw problem
    return reject(wanted, 'INVALID_OPTIONS', `${formatRef(wanted.ref)}: ${problem.toString()}`)
  }
}

function panicPlan(
  wanted: WantedChange,
  next: Assignment,
  views: readonly ProxyView[],
  context: ApplyContext,
): Plan | undefined {
  if (context.onPanic === 'allow') return undefined
  const verdict = context.lens.panic(next, views, wanted.member)
  if (verdict === undefined) return undefined
  const { cluster, healthy, total, threshold } = verdict
  return reject(
    wanted,
    'REJECTED',
    `${formatRef(wanted.ref)} is not drained: ${healthy} of ${total} endpoints of cluster ${cluster} would be healthy, and below its healthy_panic_threshold of ${threshold} % Envoy sends traffic to all of them, drained ones too; get another endpoint ready first, or set common_lb_config.healthy_panic_threshold to 0 (Envoy then answers 503), or pass onPanic: 'allow'`,
  )
}

/** Publishes, and takes back what every proxy refused. Returns why nothing changed; throws where that is not known. */
async function publish(
  before: Assignment,
  next: Assignment,
  leaving: ReadonlySet<string>,
  views: readonly ProxyView[],
  context: ApplyContext,
): Promise<DrainableError | undefined> {
  const { store, signal } = context
  try {
    let standing = before
    if (leaving.size > 0) {
      const prepared = await prepareRemoval(before, leaving, views, context)
      if (isDrainableError(prepared)) return prepared
      standing = prepared
    }
    const published = await store.publish(next, standing, signal)
    const refused = await answer(next.cluster, published.seq, context)
    if (refused === undefined) return undefined
    await store.publish(before, published.set, signal)
    return new DrainableError('REJECTED', refused, { provider: 'envoy' })
  } catch (error) {
    if (error instanceof NotPublished) return error.error
    throw error
  }
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
  views: readonly ProxyView[],
  context: ApplyContext,
): Promise<DrainableError | Assignment> {
  const service = before.cluster
  const configs = context.lens.configs(views, service)
  if (configs.some((config) => config.closeOnSetChange)) {
    const open = await openConnections(service, leaving, context)
    if (open > 0) {
      return new DrainableError(
        'CONFLICT',
        `endpoint set '${service}': ${[...leaving].join(', ')} still has ${open} connections, and the cluster has close_connections_on_host_set_change: Envoy would leak them; drain first, or wait for them to close`,
        { provider: 'envoy' },
      )
    }
  }
  const known = views.every((view) => view.proxy?.facts?.configs !== undefined)
  const lingers = configs.some((config) => config.activeChecks && !config.ignoreHealthOnRemoval)
  if (known && !lingers) return before
  const edits = new Map<string, EdsStatus>([...leaving].map((member) => [member, 'UNHEALTHY']))
  const unhealthy = before.withStatus(edits)
  // Not where it would put the cluster into panic: then the row lingers, drained, until its check fails.
  const panics = [...leaving].some(
    (member) => context.lens.panic(unhealthy, views, member) !== undefined,
  )
  if (panics) return before
  const { seq, set } = await context.store.publish(unhealthy, before, context.signal)
  await seenUnhealthy(service, leaving, seq, context)
  return set
}

async function openConnections(
  service: string,
  leaving: ReadonlySet<string>,
  context: ApplyContext,
): Promise<number> {
  const until = systemClock.now() + EMPTY
  for (;;) {
    const views = await context.look()
    const open = views
      .flatMap((view) => rowsOf(view, service))
      .reduce(
        (sum, { hosts }) =>
          sum + [...leaving].reduce((n, member) => n + (hosts.get(member)?.connections ?? 0), 0),
        0,
      )
    if (open === 0 || systemClock.now() > until) return open
    await pause(systemClock, 50, context.signal)
  }
}

/** A file is read as it is when Envoy looks: two in a row could be seen as one. */
async function seenUnhealthy(
  service: string,
  leaving: ReadonlySet<string>,
  seq: number,
  context: ApplyContext,
): Promise<void> {
  const until = systemClock.now() + ANSWER
  const inOrder = context.sink.kind === 'grpc'
  if (inOrder) {
    await answer(service, seq, context)
    return
  }
  for (;;) {
    const views = await context.look()
    const rows = views.flatMap((view) => rowsOf(view, service))
    const done = rows.every(({ hosts }) =>
      [...leaving].every((member) => (hosts.get(member)?.eds ?? 'UNHEALTHY') === 'UNHEALTHY'),
    )
    if (done || systemClock.now() > until) return
    await pause(systemClock, 20, context.signal)
  }
}

/**
 * Waits a moment for what the proxies say to a publication. Returns Envoy's words where nobody took
 * it and somebody refused it; silence is no refusal, the receipts tell the rest.
 */
async function answer(
  service: string,
  seq: number,
  { sink, signal }: ApplyContext,
): Promise<string | undefined> {
  if (sink.receipts === undefined || sink.kind !== 'grpc') return undefined
  const until = systemClock.now() + ANSWER
  for (;;) {
    const receipts = sink.receipts(service)
    const taken = receipts.filter((receipt) => receipt.ackedAt(seq) !== undefined)
    const refused = receipts.filter((receipt) => (receipt.refused ?? -1) >= seq)
    const answered = new Set([...taken, ...refused])
    const waiting = receipts.filter(
      (receipt) => receipt.state !== 'disconnected' && !answered.has(receipt),
    )
    if (waiting.length === 0 || systemClock.now() > until) {
      if (refused.length === 0 || taken.length > 0) return undefined
      const names = refused.map(({ node }) => node).join(', ')
      return `endpoint set '${service}' was refused by ${names} and taken back: "${refused[0]?.error ?? ''}"`
    }
    await pause(systemClock, 5, signal)
  }
}

/** The status an endpoint had before we drained it, by its ticket; healthy where nobody knows. */
function statusBefore(native: Change extends never ? never : unknown): EdsStatus {
  const value =
    typeof native === 'object' && native !== null && 'status' in native ? native.status : undefined
  const status = typeof value === 'string' ? toEdsStatus(value) : undefined
  return status === undefined || status === 'DRAINING' ? 'HEALTHY' : status
}

function reject(wanted: WantedChange, code: DrainableError['code'], message: string): Plan {
  return { result: rejected(wanted, code, message) }
}

function unchanged({ ref }: WantedChange): Plan {
  return { result: { ref, status: 'unchanged' } }
}

function rejected(
  { ref }: WantedChange,
  code: DrainableError['code'],
  message: string,
  cause?: unknown,
): ChangeResult {
  const known = isDrainableError(cause) ? cause : undefined
  const error = new DrainableError(code, message, {
    ref,
    provider: 'envoy',
    ...(known === undefined ? {} : { retryable: known.retryable }),
    cause,
  })
  return { ref, status: 'rejected', error }
}

function rejectedAs(wanted: WantedChange | undefined, message: string): ChangeResult {
  const ref = wanted?.ref ?? { pool: '', member: '' }
  return { ref, status: 'rejected', error: new DrainableError('REJECTED', message, { ref }) }
}
