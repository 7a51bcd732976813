import { Turnstile } from '../../../kit/turnstile.js'
import { abortable } from '../../../provider/abort.js'
import { atLeast } from '../../../provider/admin-state.js'
import type { CallContext, Change, ChangeResult, MemberRef } from '../../../provider/contract.js'
import { type DrainableError, isDrainableError } from '../../../provider/error.js'
import { formatRef, refKey } from '../../../provider/member-ref.js'
import { isLost } from '../session/session.js'
import { DurableMarks } from './durable.js'
import { Ended, type HandUp } from './ended.js'
import { identify } from '../read/reading.js'
import { Membership } from './membership.js'
import { isName } from '../codec/paths.js'
import { PutBack } from './put-back.js'
import { askServer, putServer } from './put-server.js'
import { Restorer } from './restore.js'
import { readRound, type Found, type Round } from '../read/read.js'
import { about, isDone, isFinal, settle, wishOf } from './settle.js'
import { serving } from '../read/state.js'
import { rejected, type Sent, type Step } from './step.js'
import type { Tools } from './tools.js'
import { Undo } from './undo.js'

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
  readonly #putBack: PutBack
  readonly #turn = new Turnstile()

  constructor(tools: Tools) {
    this.#tools = tools
    this.#marks = new DurableMarks(tools.configuration)
    this.#membership = new Membership(tools)
    this.#restorer = new Restorer(tools, this.#marks)
    this.#putBack = new PutBack(tools, this.#restorer)
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    ctx.signal.throwIfAborted()
    const run = this.#turn.run(ctx.signal, () => this.#apply(changes, ctx))
    return abortable(run, ctx.signal)
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
    const undo = new Undo()
    try {
      return await this.#one(change, round, undo, ctx)
    } catch (error) {
      ctx.signal.throwIfAborted()
      if (!isDrainableError(error)) throw error
      const known = about(ref, error)
      const before = round.pools.get(ref.pool)?.get(ref.member)
      if (!isLost(error)) {
        if (before === undefined || undo.isEmpty) return { ref, status: 'rejected', error: known }
        return this.#putBack.refuse(ref, before, undo, known, ctx)
      }
      const wished = wishOf(change)
      // in the wished state before: what was lost is a mark or a weight, and no look at it shows that
      if (wished === undefined || before === undefined || isDone(wished, before.verdict.own)) {
        return { ref, status: 'unknown', error: known }
      }
      return { ref, ...wished, before, undo, lost: known }
    }
  }

  async #one(change: Change, round: Round, undo: Undo, ctx: CallContext): Promise<Step> {
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
        false,
      )
    }
    switch (change.kind) {
      case 'hold':
        return this.#hold(ref, change.to, found, undo, ctx)
      case 'restore':
        return this.#restorer.restore(change, found, round, undo, ctx)
      case 'terminate':
        return this.#terminate(ref, found, undo, ctx)
      case 'remove':
        return this.#remove(ref, found, round, ctx)
    }
  }

  async #hold(
    ref: MemberRef,
    to: 'drain' | 'maint',
    found: Found,
    undo: Undo,
    ctx: CallContext,
  ): Promise<Step> {
    const { own, doubt } = found.verdict
    this.#tools.memory.holding(ref)
    if (own !== 'unknown' && atLeast(own, to)) {
      return {
        ref,
        status: (await this.#mark(ref, to, found, undo, ctx)) ? 'applied' : 'unchanged',
      }
    }
    if (own === 'unknown' && hidesMaintenance(found)) {
      // a drain could lower a maintenance of its own that can't be seen, and nothing is sent for maint
      return rejected(
        ref,
        'CONFLICT',
        `${formatRef(ref)}: ${doubt ?? 'its own state is not known'}; nothing was touched`,
        true, // a name resolves again, a tracked server is made ready
      )
    }
    await this.#mark(ref, to, found, undo, ctx)
    const answer = await askServer(this.#tools.api, ref, to, ctx)
    return { ref, wished: to, exactly: false, before: found, undo, ...answer }
  }

  /** Returns whether a durable mark was written. */
  async #mark(
    ref: MemberRef,
    to: 'drain' | 'maint',
    found: Found,
    undo: Undo,
    ctx: CallContext,
  ): Promise<boolean> {
    if (!this.#tools.settings.durable) return false
    const marks = await this.#marks.set(ref, to, found, ctx)
    if (marks === undefined) return false
    undo.first(() => this.#marks.putBack(ref, marks, ctx))
    undo.last(() => this.#marks.weigh(ref, marks, found, ctx))
    return true
  }

  /**
   * Where maint cuts, going to maint and back is how to terminate; nothing else in this API cuts.
   * The number is the load of the look before: an upper bound.
   */
  async #terminate(ref: MemberRef, found: Found, undo: Undo, ctx: CallContext): Promise<Step> {
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
    const { refused } = await askServer(this.#tools.api, ref, 'maint', ctx)
    if (refused !== undefined)
      return this.#putBack.refuse(ref, found, undo, about(ref, refused), ctx)
    const answer = await askServer(this.#tools.api, ref, own, ctx)
    const sent = { ref, wished: own, exactly: true, before: found, undo }
    return { ...sent, terminated: load, ...answer }
  }

  /** The API puts a server into maint before it deletes it; where it then refuses, it stays there. */
  async #remove(
    ref: MemberRef,
    found: Found,
    round: Round,
    ctx: CallContext,
  ): Promise<ChangeResult> {
    let refused: DrainableError
    try {
      const result = await this.#membership.remove(ref, round, ctx)
      if (result.status !== 'rejected') return result
      refused = result.error
    } catch (error) {
      if (ctx.signal.aborted || !isDrainableError(error) || isLost(error)) throw error
      refused = about(ref, error)
    }
    return this.#putBack.refuse(ref, found, new Undo(), refused, ctx)
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
      for (const [i, { ref, lost, refused, undo }] of sent) {
        const status = isFinal(refused) && undo.isEmpty ? 'rejected' : 'unknown'
        ended.add(i, { ref, status, error: lost ?? about(ref, refused ?? error) })
      }
      return
    }
    const reloaded = processesOf(before) !== processesOf(round)
    const stuck = new Map<number, Stuck>()
    for (const [i, step] of sent) {
      const result = this.#settle(step, round, reloaded, ctx.clock.now())
      const undone = step.wished === 'ready' && step.refused === undefined
      if (undone && result.status === 'rejected') stuck.set(i, { step, result })
      else ended.add(i, await this.#finish(step, result, !step.undo.isEmpty, ctx))
    }
    if (stuck.size > 0) await this.#again(stuck, ended, round, ctx)
  }

  #lookAt(sent: readonly Sent[], ctx: CallContext): Promise<Round> {
    const pools = new Set(sent.map(({ ref }) => ref.pool))
    return this.#tools.gate.run(ctx, true, () => readRound(this.#tools.api, pools, ctx))
  }

  /**
   * What goes with a change: nothing left of one that was refused, no weight kept from a server that
   * is open.
   *
   * @param moved - whether something of it may be left
   */
  async #finish(
    sent: Sent,
    result: ChangeResult,
    moved: boolean,
    ctx: CallContext,
  ): Promise<ChangeResult> {
    const { ref, wished, before, undo } = sent
    if (result.status === 'rejected' && moved) {
      return this.#putBack.refuse(ref, before, undo, result.error, ctx)
    }
    if (result.status !== 'applied' || wished !== 'ready') return result
    try {
      await this.#restorer.weightBack(ref, ctx)
      this.#marks.forget(ref)
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
        ended.add(i, await this.#finish(step, result, true, ctx))
      }
    }
    if (tried.size === 0) return
    const after = await this.#lookAt([...tried.values()], ctx)
    const reloaded = processesOf(round) !== processesOf(after)
    for (const [i, step] of tried) {
      const again = this.#settle(step, after, reloaded, ctx.clock.now())
      ended.add(i, await this.#finish(step, again, true, ctx))
    }
  }

  #settle(sent: Sent, round: Round, reloaded: boolean, now: number): ChangeResult {
    const result = settle(sent, round, reloaded)
    if (result.status === 'applied' && sent.wished === 'ready') {
      this.#tools.memory.released(sent.ref, now)
    }
    return result
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
