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
    for (const group of groups(changes)) results.push(...(await this.#group(group, ctx)))
    return results
  }

  /** Changes of different members: one look, the changes, one look. */
  async #group(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    const round = await this.#look(changes, ctx)
    if (round === undefined) return changes.map((change) => noSuchName(change.ref))
    this.#tools.memory.note(round.infos, ctx.clock.now())
    const steps: Step[] = []
    let broken: DrainableError | undefined
    for (const change of changes) {
      if (broken !== undefined) {
        steps.push({ ref: change.ref, status: 'unknown', error: broken })
        continue
      }
      const step = await this.#attempt(change, round, ctx)
      steps.push(step)
      if ('lost' in step) broken = step.lost
      else if ('status' in step && step.status === 'unknown') broken = step.error
    }
    return this.#verify(steps, round, ctx)
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
    steps: readonly Step[],
    before: Round,
    ctx: CallContext,
  ): Promise<readonly ChangeResult[]> {
    if (steps.every((step) => 'status' in step)) return steps
    const pools = new Set(steps.filter((step) => !('status' in step)).map(({ ref }) => ref.pool))
    let round: Round
    try {
      round = await this.#tools.gate.run(ctx, true, () => readRound(this.#tools.api, pools, ctx))
    } catch (error) {
      ctx.signal.throwIfAborted()
      if (!isDrainableError(error)) throw error
      return steps.map((step) =>
        'status' in step
          ? step
          : {
              ref: step.ref,
              status: 'unknown',
              error: step.lost ?? about(step.ref, step.refused ?? error),
            },
      )
    }
    const reloaded = processesOf(before) !== processesOf(round)
    const settled: ChangeResult[] = []
    for (const step of steps) {
      if ('status' in step) settled.push(step)
      else {
        const result = this.#settle(step, round, reloaded, ctx.clock.now())
        settled.push(await this.#finish(step, result, ctx))
      }
    }
    const stuck = steps.flatMap((step, i) =>
      'status' in step ||
      settled[i]?.status !== 'rejected' ||
      step.wished !== 'ready' ||
      step.refused !== undefined
        ? []
        : [step],
    )
    return stuck.length === 0 ? settled : this.#again(stuck, settled, round, ctx)
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
    stuck: readonly Sent[],
    settled: readonly ChangeResult[],
    round: Round,
    ctx: CallContext,
  ): Promise<readonly ChangeResult[]> {
    const tried = new Map<string, Sent>()
    for (const sent of stuck) {
      try {
        await this.#restorer.byWayOfMaint(sent.ref, round, ctx)
        await putServer(this.#tools.api, sent.ref, { admin_state: 'ready' }, ctx)
        tried.set(refKey(sent.ref), sent)
      } catch (error) {
        ctx.signal.throwIfAborted()
        if (!isDrainableError(error)) throw error
      }
    }
    if (tried.size === 0) return settled
    const pools = new Set(stuck.map(({ ref }) => ref.pool))
    const after = await this.#tools.gate.run(ctx, true, () =>
      readRound(this.#tools.api, pools, ctx),
    )
    const reloaded = processesOf(round) !== processesOf(after)
    return settled.map((result) => {
      const sent = tried.get(refKey(result.ref))
      return sent === undefined ? result : this.#settle(sent, after, reloaded, ctx.clock.now())
    })
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
