import type {
  AdminState,
  CallContext,
  Change,
  ChangeResult,
  MemberRef,
} from '../../provider/contract.js'
import { DrainableError, isDrainableError, type ErrorCode } from '../../provider/error.js'
import { formatRef, refKey } from '../../provider/member-ref.js'
import { PROVIDER } from './api.js'
import { DurableMarks } from './durable.js'
import { Ended, type HandUp } from './ended.js'
import { identify } from './member.js'
import { Membership } from './membership.js'
import { untilAbort } from './gate.js'
import { isName } from './paths.js'
import { askServer, putServer } from './put-server.js'
import { Restorer } from './restore.js'
import { readRound, type Found, type Round } from './round.js'
import { atLeast, serving } from './state.js'
import { rejected, type Sent, type Step } from './step.js'
import type { Tools } from './tools.js'

const LOST: readonly ErrorCode[] = [
  'UNREACHABLE',
  'CONNECTION_LOST',
  'CALL_TIMEOUT',
  'MALFORMED_REPLY',
]

/** An undo that was answered with 200 and did not show. */
interface Stuck {
  readonly step: Sent
  readonly result: ChangeResult
}

/**
 * Makes changes. An answer of 200 proves nothing here: the API sends a command only where the state
 * it read differs from the one asked for, and it misreads some. So every change is between two
 * looks at both witnesses, and the second decides.
 */
export class Changer {
  readonly #tools: Tools
  readonly #marks: DurableMarks
  readonly #membership: Membership
  readonly #restorer: Restorer
  #tail: Promise<unknown> = Promise.resolve()

  constructor(tools: Tools) {
    this.#tools = tools
    this.#marks = new DurableMarks(tools.configuration)
    this.#membership = new Membership(tools)
    this.#restorer = new Restorer(tools, this.#marks)
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    ctx.signal.throwIfAborted()
    const run = this.#tail.then(() => this.#apply(changes, ctx))
    this.#tail = run.catch(() => undefined)
    return untilAbort(run, ctx.signal)
  }

  async #apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    ctx.signal.throwIfAborted()
    const results: ChangeResult[] = []
    for (const group of groups(changes)) {
      const from = results.length
      const ended = await this.#group(group, ctx, (i, result) => {
        // the call has ended with its signal, this may still be on its way out
        if (!ctx.signal.aborted) ctx.result?.(from + i, result)
      })
      results.push(...ended)
    }
    return results
  }

  /** Changes of different members: one look, the changes, one look. */
  async #group(
    changes: readonly Change[],
    ctx: CallContext,
    handUp: HandUp,
  ): Promise<readonly ChangeResult[]> {
    const ended = new Ended(handUp)
    const round = await this.#look(changes, ctx)
    if (round === undefined) {
      changes.forEach(({ ref }, i) => ended.add(i, noSuchName(ref)))
      return ended.results
    }
    this.#tools.memory.note(round.infos, ctx.clock.now())
    const sent = new Map<number, Sent>()
    let broken: DrainableError | undefined
    for (const [i, change] of changes.entries()) {
      if (broken !== undefined) {
        ended.add(i, { ref: change.ref, status: 'unknown', error: broken })
        continue
      }
      const step = await this.#attempt(change, round, ctx)
      if ('status' in step) ended.add(i, step)
      else sent.set(i, step)
      if ('lost' in step) broken = step.lost
      else if ('status' in step && step.status === 'unknown') broken = step.error
    }
    await this.#verify(sent, ended, round, ctx)
    return ended.results
  }

  async #look(changes: readonly Change[], ctx: CallContext): Promise<Round | undefined> {
    const named = changes.filter(({ ref }) => isName(ref.pool) && isName(ref.member))
    if (named.length === 0) return undefined
    const pools = new Set(named.map(({ ref }) => ref.pool))
    return this.#tools.gate.run(ctx, true, () => readRound(this.#tools.api, pools, ctx))
  }

  /** One change. What the API refuses, and what can't be sent, are values. */
  async #attempt(change: Change, round: Round, ctx: CallContext): Promise<Step> {
    const { ref } = change
    try {
      return await this.#one(change, round, ctx)
    } catch (error) {
      ctx.signal.throwIfAborted()
      if (!isDrainableError(error)) throw error
      const known = about(ref, error)
      if (!LOST.includes(error.code)) return { ref, status: 'rejected', error: known }
      const wished = wishOf(change)
      // in the wished state before: what was lost is a mark or a weight, and no look at it shows that
      const own = round.pools.get(ref.pool)?.get(ref.member)?.verdict.own
      if (wished === undefined || isDone(wished, own)) {
        return { ref, status: 'unknown', error: known }
      }
      return { ref, ...wished, lost: known }
    }
  }

  async #one(change: Change, round: Round, ctx: CallContext): Promise<Step> {
    const { ref } = change
    if (!isName(ref.pool) || !isName(ref.member)) return noSuchName(ref)
    const found = round.pools.get(ref.pool)?.get(ref.member)
    if (change.kind === 'add') return this.#membership.add(change, found, round, ctx)
    if (found === undefined) {
      return rejected(ref, 'NOT_FOUND', `backend ${ref.pool} has no server ${ref.member}`)
    }
    const { identity } = identify(found)
    if (change.identity !== undefined && change.identity !== identity) {
      return rejected(
        ref,
        'CONFLICT',
        `${formatRef(ref)} is another server now: expected ${change.identity}, found ${identity}; nothing was touched`,
      )
    }
    switch (change.kind) {
      case 'hold':
        return this.#hold(ref, change.to, found, ctx)
      case 'restore':
        return this.#restorer.restore(change, found, round, ctx)
      case 'terminate':
        return this.#terminate(ref, found, ctx)
      case 'remove':
        return this.#membership.remove(ref, round, ctx)
    }
  }

  async #hold(
    ref: MemberRef,
    to: 'drain' | 'maint',
    found: Found,
    ctx: CallContext,
  ): Promise<Step> {
    const { own, doubt } = found.verdict
    const { durable } = this.#tools.settings
    this.#tools.memory.holding(ref)
    if (own !== 'unknown' && atLeast(own, to)) {
      const marked = durable && (await this.#marks.set(ref, to, found, ctx))
      return { ref, status: marked ? 'applied' : 'unchanged' }
    }
    if (own === 'unknown' && hidesMaintenance(found)) {
      // a drain could lower a maintenance of its own that can't be seen, and nothing is sent for maint
      return rejected(
        ref,
        'CONFLICT',
        `${formatRef(ref)}: ${doubt ?? 'its own state is not known'}; nothing was touched`,
      )
    }
    const marked = durable && (await this.#marks.set(ref, to, found, ctx))
    try {
      const answer = await askServer(this.#tools.api, ref, to, ctx)
      return { ref, wished: to, exactly: false, marked, ...answer }
    } catch (error) {
      const refused = isDrainableError(error) && !LOST.includes(error.code)
      if (marked && refused) await this.#marks.clear(ref, undefined, [], ctx)
      throw error
    }
  }

  /**
   * Where maint cuts, going to maint and back is how to terminate; nothing else in this API cuts.
   * The number is the load of the look before: an upper bound.
   */
  async #terminate(ref: MemberRef, found: Found, ctx: CallContext): Promise<Step> {
    const { own } = found.verdict
    if (this.#tools.settings.maintCuts !== true) {
      return rejected(
        ref,
        'UNSUPPORTED',
        `${formatRef(ref)}: the Data Plane API has no call that cuts connections; use drainable/haproxy-runtime, or onTimeout: 'proceed'`,
      )
    }
    const load = found.rows.reduce((sum, row) => sum + row.scur, 0)
    if (load === 0) return { ref, status: 'unchanged', terminated: 0 }
    if (own === 'maint' || own === 'unknown') {
      return rejected(
        ref,
        'UNSUPPORTED',
        `${formatRef(ref)} holds ${load} under '${found.rows[0]?.status ?? ''}': going to maint is the only way of the Data Plane API to cut; use drainable/haproxy-runtime`,
      )
    }
    this.#tools.memory.holding(ref)
    await putServer(this.#tools.api, ref, { admin_state: 'maint' }, ctx)
    await putServer(this.#tools.api, ref, { admin_state: own }, ctx)
    return { ref, wished: own, exactly: true, terminated: load }
  }

  /** The second look: both witnesses must show what was asked for, in the process that was asked. */
  async #verify(
    sent: ReadonlyMap<number, Sent>,
    ended: Ended,
    before: Round,
    ctx: CallContext,
  ): Promise<void> {
    if (sent.size === 0) return
    let round: Round
    try {
      round = await this.#lookAt([...sent.values()], ctx)
    } catch (error) {
      ctx.signal.throwIfAborted()
      if (!isDrainableError(error)) throw error
      for (const [i, { ref, lost, refused }] of sent) {
        ended.add(i, { ref, status: 'unknown', error: lost ?? about(ref, refused ?? error) })
      }
      return
    }
    const reloaded = processesOf(before) !== processesOf(round)
    const stuck = new Map<number, Stuck>()
    for (const [i, step] of sent) {
      const settled = this.#settle(step, round, reloaded, ctx.clock.now())
      const result = await this.#finish(step, settled, ctx)
      const undone = step.wished === 'ready' && step.refused === undefined
      if (undone && result.status === 'rejected') stuck.set(i, { step, result })
      else ended.add(i, result)
    }
    if (stuck.size > 0) await this.#again(stuck, ended, round, ctx)
  }

  #lookAt(sent: readonly Sent[], ctx: CallContext): Promise<Round> {
    const pools = new Set(sent.map(({ ref }) => ref.pool))
    return this.#tools.gate.run(ctx, true, () => readRound(this.#tools.api, pools, ctx))
  }

  /** What goes with a change: no mark of a hold that was refused, no weight kept from a server that is open. */
  async #finish(sent: Sent, result: ChangeResult, ctx: CallContext): Promise<ChangeResult> {
    const { ref, wished } = sent
    try {
      if (result.status === 'rejected' && sent.refused !== undefined && sent.marked === true) {
        await this.#marks.clear(ref, undefined, [], ctx)
      }
      if (result.status === 'applied' && wished === 'ready') {
        await this.#restorer.weightBack(ref, undefined, ctx)
      }
      return result
    } catch (error) {
      ctx.signal.throwIfAborted()
      if (!isDrainableError(error)) throw error
      return { ref, status: 'unknown', error: about(ref, error) }
    }
  }

  /** An undo that did not show goes by way of maint, once, where that cuts nothing. */
  async #again(
    stuck: ReadonlyMap<number, Stuck>,
    ended: Ended,
    round: Round,
    ctx: CallContext,
  ): Promise<void> {
    const tried = new Map<number, Sent>()
    for (const [i, { step, result }] of stuck) {
      try {
        await this.#restorer.byWayOfMaint(step.ref, round, ctx)
        await putServer(this.#tools.api, step.ref, { admin_state: 'ready' }, ctx)
        tried.set(i, step)
      } catch (error) {
        ctx.signal.throwIfAborted()
        if (!isDrainableError(error)) throw error
        ended.add(i, result)
      }
    }
    if (tried.size === 0) return
    const after = await this.#lookAt([...tried.values()], ctx)
    const reloaded = processesOf(round) !== processesOf(after)
    for (const [i, step] of tried) {
      ended.add(i, this.#settle(step, after, reloaded, ctx.clock.now()))
    }
  }

  #settle(sent: Sent, round: Round, reloaded: boolean, now: number): ChangeResult {
    const { ref, wished } = sent
    const found = round.pools.get(ref.pool)?.get(ref.member)
    const own = found?.verdict.own
    const done = isDone(sent, own)
    if (done && !reloaded) {
      if (wished === 'ready') this.#tools.memory.released(ref, now)
      const cut = sent.terminated
      return {
        ref,
        status: 'applied',
        ...(cut === undefined ? {} : { terminated: cut, atMost: true }),
      }
    }
    const seen = found === undefined ? 'gone' : `'${found.rows[0]?.status ?? ''}'`
    const doubt = found?.verdict.doubt === undefined ? '' : `: ${found.verdict.doubt}`
    const { refused } = sent
    const absent = found === undefined && refused?.code === 'NOT_FOUND'
    const denied = refused?.code === 'NOT_FOUND' && !absent
    const error =
      sent.lost ??
      (refused === undefined || denied ? undefined : about(ref, refused)) ??
      new DrainableError(
        'CONFLICT',
        denied
          ? `${formatRef(ref)}: '${wished}' was answered with "not found", but its status is ${seen}; the API may not have reached HAProxy`
          : reloaded
            ? `${formatRef(ref)}: HAProxy was reloaded while '${wished}' was set; it is ${seen} now`
            : `${formatRef(ref)}: '${wished}' was answered with 200, but its status is ${seen}${doubt}`,
        { provider: PROVIDER, ref },
      )
    if (absent && !reloaded) return { ref, status: 'rejected', error }
    const open =
      sent.lost !== undefined || denied || reloaded || own === undefined || own === 'unknown'
    return { ref, status: open ? 'unknown' : 'rejected', error }
  }
}

/** Which processes answered. */
function processesOf(round: Round): string {
  return round.infos.map((info) => `${info.node}/${info.pid}`).join()
}

/** Whether a maintenance of its own may be hidden. */
function hidesMaintenance(found: Found): boolean {
  return found.rows.some((row) => !/^(DRAIN|DOWN|NOLB)/.test(row.status) && !serving(row.status))
}

function wishOf(
  change: Change,
): { readonly wished: AdminState; readonly exactly: boolean } | undefined {
  if (change.kind === 'hold') return { wished: change.to, exactly: false }
  if (change.kind === 'restore') return { wished: change.to, exactly: true }
  return undefined
}

/** Whether a state is the wished one. */
function isDone(
  { wished, exactly }: Pick<Sent, 'wished' | 'exactly'>,
  own: AdminState | 'unknown' | undefined,
): boolean {
  if (own === undefined || own === 'unknown') return false
  return exactly ? own === wished : atLeast(own, wished)
}

/** Cuts the list where a member comes a second time: its second change must see what the first did. */
function groups(changes: readonly Change[]): Change[][] {
  const result: Change[][] = []
  let members = new Set<string>()
  for (const change of changes) {
    const key = refKey(change.ref)
    const last = result.at(-1)
    if (last === undefined || members.has(key)) {
      result.push([change])
      members = new Set([key])
    } else {
      last.push(change)
      members.add(key)
    }
  }
  return result
}

function noSuchName(ref: MemberRef): ChangeResult {
  return rejected(
    ref,
    'NOT_FOUND',
    `${formatRef(ref)} can't exist: HAProxy's names are letters, digits and - _ . :`,
  )
}

/** The same error, with the member it is about. */
function about(ref: MemberRef, error: DrainableError): DrainableError {
  if (error.ref !== undefined) return error
  return new DrainableError(error.code, `${formatRef(ref)}: ${error.message}`, {
    provider: PROVIDER,
    ref,
    retryable: error.retryable,
    cause: error,
  })
}
