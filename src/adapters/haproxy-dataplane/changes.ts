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
import { parseRuntimeServer, saysNotFound } from './codec.js'
import { DurableMarks } from './durable.js'
import { configStamp, identify, readNative, weightOf } from './member.js'
import { Membership } from './membership.js'
import { isName } from './paths.js'
import { readProcesses, readRound, type Found, type Round } from './round.js'
import { atLeast, serving } from './state.js'
import type { Tools } from './tools.js'

/** A change that was sent: what the next look at the server must show. */
interface Sent {
  readonly ref: MemberRef
  readonly wished: AdminState
  /** `exactly` for a restore, `at least` for a hold. */
  readonly exactly: boolean
  /** The answer was lost: it may have been executed, or may still be. */
  readonly lost?: DrainableError
  readonly terminated?: number
}

type Step = ChangeResult | Sent

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
  /** Weights that we set to 0 at run time, as they were. */
  readonly #weights = new Map<string, number>()
  #tail: Promise<unknown> = Promise.resolve()

  constructor(tools: Tools) {
    this.#tools = tools
    this.#marks = new DurableMarks(tools.configuration)
    this.#membership = new Membership(tools)
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
    this.#tools.memory.note(round.infos)
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
      if (wished === undefined) return { ref, status: 'unknown', error: known }
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
        return this.#restore(change, found, round, ctx)
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
      await this.#put(ref, { admin_state: to }, ctx)
    } catch (error) {
      const refused = isDrainableError(error) && !LOST.includes(error.code)
      if (marked && refused) await this.#marks.clear(ref, undefined, [], ctx)
      throw error
    }
    return { ref, wished: to, exactly: false }
  }

  async #restore(
    change: Change & { readonly kind: 'restore' },
    found: Found,
    round: Round,
    ctx: CallContext,
  ): Promise<Step> {
    const { ref, expect, to } = change
    const { own, doubt } = found.verdict
    const { durable } = this.#tools.settings
    const siblings = siblingsOf(ref, round)
    if (own === to && own !== expect) {
      if (!durable || to !== 'ready') return { ref, status: 'unchanged' }
      const cleared = await this.#marks.clear(ref, change.native, siblings, ctx)
      return { ref, status: cleared ? 'applied' : 'unchanged' }
    }
    if (own !== expect) {
      const what = own === 'unknown' ? (doubt ?? 'a state that is not known') : `'${own}'`
      return rejected(
        ref,
        'CONFLICT',
        `${formatRef(ref)}: expected '${expect}', found ${what}; nothing was touched`,
      )
    }
    const kept = await this.#keepBackupSessions(ref, found, round, ctx)
    if (kept !== undefined && 'status' in kept) return kept
    if (durable && own === 'maint' && to === 'drain') {
      await this.#marks.leaveMaintenance(ref, change.native, ctx)
    }
    if (durable && to === 'ready') await this.#marks.clear(ref, change.native, siblings, ctx)
    if (to === 'ready' && found.server?.admin === 'ready') {
      // misread as ready already: nothing would be sent
      await this.#byWayOfMaint(ref, round, ctx)
    }
    await this.#put(ref, { admin_state: to }, ctx)
    if (to === 'ready') await this.#weightBack(ref, change, ctx)
    return { ref, wished: to, exactly: true }
  }

  /**
   * With `on-marked-up shutdown-backup-sessions`, a server that leaves maint cuts the sessions on
   * the backend's backup servers, unless its weight is 0 at that moment.
   */
  async #keepBackupSessions(
    ref: MemberRef,
    found: Found,
    round: Round,
    ctx: CallContext,
  ): Promise<ChangeResult | undefined> {
    if (found.verdict.own !== 'maint' || found.rows.every((row) => row.weight === 0))
      return undefined
    const backups = [...(round.pools.get(ref.pool)?.values() ?? [])].flatMap(({ rows }) => rows)
    const sessions = backups.reduce((sum, row) => sum + (row.backup ? row.scur : 0), 0)
    if (sessions === 0) return undefined
    const configured = await this.#tools.configuration.servers(ref.pool, configStamp(round), ctx)
    if (configured(ref.member).cutsBackups === false) return undefined
    if (!round.served.setsWeight) {
      return rejected(
        ref,
        'CONFLICT',
        `${formatRef(ref)}: leaving maint may cut ${sessions} sessions on backup servers (on-marked-up shutdown-backup-sessions); try again when they have ended, or use durable drains or Data Plane API 3.4`,
      )
    }
    this.#weights.set(refKey(ref), weightOf(found))
    await this.#put(ref, { weight: 0 }, ctx)
    await this.#put(ref, { admin_state: 'ready' }, ctx)
    return undefined
  }

  async #weightBack(
    ref: MemberRef,
    change: Change & { readonly kind: 'restore' },
    ctx: CallContext,
  ): Promise<void> {
    const ours = this.#weights.get(refKey(ref))
    if (ours === undefined) return
    await this.#put(ref, { weight: readNative(change.native)?.weight ?? ours }, ctx)
    this.#weights.delete(refKey(ref))
  }

  async #byWayOfMaint(ref: MemberRef, round: Round, ctx: CallContext): Promise<void> {
    const { settings, configuration } = this.#tools
    const configured = await configuration.servers(ref.pool, configStamp(round), ctx)
    const gentle =
      settings.maintCuts === undefined
        ? configured(ref.member).maint === 'gentle'
        : !settings.maintCuts
    if (!gentle) {
      throw new DrainableError(
        'REJECTED',
        `${formatRef(ref)}: the API reads its drained state as 'ready' and sends nothing; a way round it goes by way of maint, which may cut its sessions: set maintCuts: false if it does not`,
        { provider: PROVIDER, ref },
      )
    }
    await this.#put(ref, { admin_state: 'maint' }, ctx)
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
    await this.#put(ref, { admin_state: 'maint' }, ctx)
    await this.#put(ref, { admin_state: own }, ctx)
    return { ref, wished: own, exactly: true, terminated: load }
  }

  /** Sends one runtime change. Never a body that was read: 3.4 would take its weight and address for wishes. */
  async #put(ref: MemberRef, body: Record<string, unknown>, ctx: CallContext): Promise<void> {
    const { api } = this.#tools
    const { paths } = await api.served(ctx)
    const path = paths.server(ref.pool, ref.member)
    const reply = await api.send({ method: 'PUT', path, body }, ctx)
    if (reply.status === 200) {
      api.parse(reply, parseRuntimeServer)
      return
    }
    // the same words are said where HAProxy can't be reached: that is thrown here
    if (saysNotFound(reply.status, reply.words)) await readProcesses(api, ctx)
    throw api.toError(`PUT ${path}`, reply)
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
          : { ref: step.ref, status: 'unknown', error: step.lost ?? about(step.ref, error) },
      )
    }
    const reloaded = configStamp(before).split('|')[1] !== configStamp(round).split('|')[1]
    return steps.map((step) =>
      'status' in step ? step : this.#settle(step, round, reloaded, ctx.clock.now()),
    )
  }

  #settle(sent: Sent, round: Round, reloaded: boolean, now: number): ChangeResult {
    const { ref, wished } = sent
    const found = round.pools.get(ref.pool)?.get(ref.member)
    const own = found?.verdict.own
    const done =
      own !== undefined &&
      own !== 'unknown' &&
      (sent.exactly ? own === wished : atLeast(own, wished))
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
    const error =
      sent.lost ??
      new DrainableError(
        'CONFLICT',
        reloaded
          ? `${formatRef(ref)}: HAProxy was reloaded while '${wished}' was set; it is ${seen} now`
          : `${formatRef(ref)}: '${wished}' was answered with 200, but its status is ${seen}${doubt}`,
        { provider: PROVIDER, ref },
      )
    const open = sent.lost !== undefined || reloaded || own === undefined || own === 'unknown'
    return { ref, status: open ? 'unknown' : 'rejected', error }
  }
}

/** Whether a maintenance of its own may be hidden. */
function hidesMaintenance(found: Found): boolean {
  return found.rows.some((row) => !/^(DRAIN|DOWN|NOLB)/.test(row.status) && !serving(row.status))
}

function siblingsOf(ref: MemberRef, round: Round): readonly Found[] {
  return [...(round.pools.get(ref.pool) ?? [])].flatMap(([member, found]) =>
    member === ref.member ? [] : [found],
  )
}

function wishOf(
  change: Change,
): { readonly wished: AdminState; readonly exactly: boolean } | undefined {
  if (change.kind === 'hold') return { wished: change.to, exactly: false }
  if (change.kind === 'restore') return { wished: change.to, exactly: true }
  return undefined
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

function rejected(ref: MemberRef, code: ErrorCode, message: string): ChangeResult {
  const error = new DrainableError(code, message, { provider: PROVIDER, ref })
  return { ref, status: 'rejected', error }
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

/** An abort waits for nothing: not for the change before, not for a call that hangs. */
function untilAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
