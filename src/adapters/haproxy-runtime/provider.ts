import { pause } from '../../provider/clock.js'
import type {
  CallContext,
  Change,
  ChangeResult,
  DrainableProvider,
  LoadScope,
  MemberRef,
  PoolReading,
  ProviderInfo,
  Reading,
  Snapshot,
} from '../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../provider/error.js'
import { refKey } from '../../provider/member-ref.js'
import { applyChange, type Workshop } from './changes.js'
import { AnotherProcess, type MasterSocket, StatsChannel } from './channel.js'
import { isName } from './codec-commands.js'
import { parseVersion } from './codec-info.js'
import { identityOf, type ServerState } from './codec-state.js'
import { connectMaster, type Facts, readFacts } from './facts.js'
import { Followers } from './followers.js'
import { toHealth } from './health.js'
import { KeptConnection } from './kept-connection.js'
import { type OtherSight, OtherProcesses, whoAnswers } from './other-processes.js'
import type { Settings } from './options.js'
import { type Process, toProcess } from './process.js'
import { type ProcessSight, type Sight, type Wanted, wouldServe } from './process-view.js'
import { ScopeMemory } from './scope-memory.js'
import { RuntimeSocket, type SocketLimits } from './socket.js'

/** How long a request in turn-around after a refused connect is in no counter (1,000 ms and a bit), ms. */
const BLIND = 1_100
/** A command given up is executed within that long after a frozen process goes on, ms. */
const LATE_BOUND = 1_000
/** A reload hands the socket over: for that long either process may answer. */
const HAND_OVER = 1_000
const HAND_OVER_LOOK = 10
/** Between two looks further apart than that, two reloads can have gone by unseen. */
const UNSEEN_RELOAD = 2_000
/** Old workers are told to go only once the new one runs: the margin on top of `within`. */
const WITHIN_MARGIN = 2_000

/** Drains servers of one HAProxy through its Runtime API. */
export class HaproxyRuntimeProvider implements DrainableProvider {
  readonly specVersion = 1
  readonly name = 'haproxy-runtime'
  readonly instance: string
  readonly #settings: Settings
  readonly #limits: SocketLimits
  readonly #socket: RuntimeSocket
  readonly #stats: StatsChannel
  readonly #memory = new ScopeMemory()
  readonly #others: OtherProcesses
  readonly #followers = new Followers()
  #facts: Facts | undefined
  #master: MasterSocket | undefined
  #masterAsked = false
  #current: Process | undefined
  /** By the clock of the calls: since when no process of before the first look can be left, less `within`. */
  #bornAt = 0
  /** Set when two looks were so far apart that a whole process may have come and gone between them. */
  #unseenSince: ReadonlySet<string> = new Set()

  constructor(settings: Settings) {
    this.#settings = settings
    this.#limits = settings
    this.#socket = new RuntimeSocket(settings.socket, settings)
    this.#stats = new StatsChannel(this.#socket)
    this.instance = this.#socket.label
    this.#others = new OtherProcesses((scope) => this.#memory.isSettled(scope))
  }

  async describe(ctx: CallContext): Promise<ProviderInfo> {
    const { info } = await this.#connect(ctx)
    return {
      product: 'haproxy',
      version: info.version,
      capabilities: {
        ladder: ['ready', 'drain', 'maint'],
        maint: this.#settings.maintCuts ? 'cuts' : 'gentle',
        terminate: true,
        remove: true,
        add: true,
        counts: 'requests',
        freshness: 0,
        blind: BLIND,
        lateBound: LATE_BOUND,
        survivesReload: false,
        countsAfterRemove: false,
      },
    }
  }

  async observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot> {
    await this.#connect(ctx)
    if (refs !== 'all') this.#memory.look(refs, ctx.clock.now())
    const wanted = refs === 'all' ? 'all' : toWanted(refs)
    const { process, sight, others } = await this.#readEvery(wanted, ctx)
    const targets = refs === 'all' ? [...sight.members.values()].map(({ ref }) => ref) : refs
    const tracked =
      refs === 'all'
        ? this.#followers.learn(
            process.scope,
            [...sight.members.values()].map(({ row }) => row),
          )
        : await this.#followers.read(
            process.scope,
            [...sight.members.values()],
            this.#stats.to(process.incarnation ?? ''),
            ctx.signal,
          )
    const readings = targets.map((ref): Reading => {
      const scopes = this.#scopes(ref, process, sight, others, refs !== 'all', ctx)
      const seen = sight.members.get(keyOf(ref))
      if (seen === undefined) return { ref, present: false, scopes }
      return this.#present(ref, seen, scopes, tracked.get(keyOf(ref)) ?? [])
    })
    this.#others.forget((scope) => this.#memory.isListed(scope))
    const balancer = refs === 'all' ? undefined : refs[0]?.balancer
    return { readings, pools: toPools(sight, balancer) }
  }

  /** The process that serves, then the others; again where a reload is just handing the socket over. */
  async #readEvery(
    wanted: Wanted | 'all',
    ctx: CallContext,
  ): Promise<{ process: Process; sight: ProcessSight; others: OtherSight }> {
    const until = ctx.clock.now() + HAND_OVER
    for (;;) {
      const { process, sight } = await this.#readCurrent(wanted, ctx)
      if (wanted !== 'all') await this.#keep(process, sight, ctx)
      const others = await this.#others.read(wanted, process, this.#master, ctx)
      const coming = others.read.some(({ old }) => !old)
      if (!coming || ctx.clock.now() >= until) return { process, sight, others }
      await pause(ctx.clock, HAND_OVER_LOOK, ctx.signal)
    }
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    const facts = await this.#connect(ctx)
    const refused = new Map<Change, DrainableError>()
    for (const change of changes) {
      const error = this.#refusal(change)
      if (error !== undefined) refused.set(change, error)
    }
    const open = changes.filter((change) => !refused.has(change))
    const { process, states } = await this.#states(new Set(open.map(({ ref }) => ref.pool)), ctx)
    if (open.some(({ kind }) => kind === 'hold')) await this.#keepFirst(process, ctx)
    const held = open.flatMap(({ kind, ref }) =>
      kind === 'hold' ? (states.get(ref.pool)?.get(ref.member) ?? []) : [],
    )
    const all = held.map((state) => ({ state }))
    await this.#followers.read(
      process.scope,
      all,
      this.#stats.to(process.incarnation ?? ''),
      ctx.signal,
    )
    const shop = this.#workshop(facts, process, open)
    const results: ChangeResult[] = []
    let lost: DrainableError | undefined
    for (const change of changes) {
      const { ref } = change
      const error = refused.get(change)
      if (error !== undefined) results.push({ ref, status: 'rejected', error })
      else if (lost !== undefined) results.push({ ref, status: 'unknown', error: lost })
      else {
        const found = states.get(ref.pool)?.get(ref.member)
        const result = await this.#one(shop, change, found, ctx)
        if (result.status === 'unknown') lost = result.error
        results.push(result)
      }
    }
    return results
  }

  close(): Promise<void> {
    this.#current?.kept?.close()
    this.#others.close()
    this.#socket.close()
    this.#master?.socket.close()
    return Promise.resolve()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** A throw of one change says nothing of those that were done before it. */
  async #one(
    shop: Workshop,
    change: Change,
    found: ServerState | undefined,
    ctx: CallContext,
  ): Promise<ChangeResult> {
    const { ref } = change
    try {
      return await applyChange(shop, change, found, ctx)
    } catch (error) {
      if (ctx.signal.aborted) throw ctx.signal.reason
      if (error instanceof AnotherProcess) {
        return {
          ref,
          status: 'unknown',
          error: new DrainableError('CONFLICT', `${this.instance} was reloaded during the change`, {
            ref,
            provider: this.name,
            cause: error,
          }),
        }
      }
      if (!isDrainableError(error)) throw error
      const status = error.code === 'INVALID_OPTIONS' ? 'rejected' : 'unknown'
      return { ref, status, error }
    }
  }

  /** What is known before anything is sent. */
  #refusal(change: Change): DrainableError | undefined {
    const { ref } = change
    if (change.kind !== 'hold' || this.#settings.oldWorkers !== 'wait') return undefined
    const unseen = this.#unseenAtStart()
    if (unseen === undefined) return undefined
    return new DrainableError(
      'UNSUPPORTED',
      `${ref.pool}/${ref.member} was not drained: ${unseen}`,
      {
        ref,
        provider: this.name,
      },
    )
  }

  /** Whether processes of before the first look may hold work and can't be seen, and why. */
  #unseenAtStart(): string | undefined {
    const facts = this.#facts
    if (facts === undefined || this.#master !== undefined) return undefined
    if (facts.mworker === undefined) {
      return `whether ${this.instance} has old workers can't be asked at level ${facts.level}, give the master socket (haproxy -S) as 'master'`
    }
    if (!facts.mworker || facts.neverReloaded) return undefined
    return `HAProxy at ${this.instance} runs under a master (-W), and old workers of an earlier reload would not be seen: give the path of its master socket (haproxy -S) as 'master', or set oldWorkers: { within: <your hard-stop-after> } or 'accept'`
  }

  #workshop(facts: Facts, process: Process, changes: readonly Change[]): Workshop {
    const [major] = parseVersion(facts.info.version)
    return {
      send: (line, signal) => this.#stats.change(line, process.incarnation ?? '', signal),
      view: process.view,
      channel: this.#stats.to(process.incarnation ?? ''),
      others: changes.some(({ kind }) => kind === 'terminate')
        ? this.#others.channels(this.#master)
        : [],
      followers: (ref) => this.#followers.of(ref),
      keepFollowers: this.#settings.keepFollowers,
      canWait: major >= 3,
    }
  }

  async #connect(ctx: CallContext): Promise<Facts> {
    ctx.signal.throwIfAborted()
    if (this.#facts === undefined) {
      const facts = await readFacts(this.#stats, ctx.signal)
      this.#bornAt = ctx.clock.now() - facts.info.uptime * 1_000
      this.#facts = facts
    }
    if (!this.#masterAsked) await this.#findMaster(this.#facts, ctx)
    return this.#facts
  }

  /** The given master must be the right one; a found one is used if it is. */
  async #findMaster(facts: Facts, ctx: CallContext): Promise<void> {
    const given = this.#settings.master
    const address =
      given ?? (facts.mworker === true && this.#socket.local ? facts.masterAddress : undefined)
    if (address === undefined) {
      this.#masterAsked = true
      return
    }
    const until = ctx.clock.now() + HAND_OVER
    for (;;) {
      try {
        const { info } = await this.#stats.ask([], ctx.signal)
        const master = await connectMaster(address, this.#limits, info, ctx.signal)
        if (master !== undefined) {
          this.#master = master
          break
        }
      } catch (error) {
        if (ctx.signal.aborted || !isDrainableError(error)) throw error
        // A master that executes itself anew (a start, a reload) does not listen for a moment.
        const away = (error.cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED'
        if (given === undefined && !away) break
        if (!away || ctx.clock.now() >= until) throw error
      }
      if (ctx.clock.now() >= until) {
        if (given === undefined) break
        throw new DrainableError(
          'INVALID_OPTIONS',
          `haproxyRuntime(): the master given is not the one of the process that serves ${this.instance}: its 'show proc' does not list that process`,
          { provider: this.name },
        )
      }
      await pause(ctx.clock, HAND_OVER_LOOK, ctx.signal)
    }
    this.#masterAsked = true
  }

  /** Reads whoever serves the socket, and follows it through a reload. */
  async #readCurrent(
    wanted: Wanted | 'all',
    ctx: CallContext,
  ): Promise<{ process: Process; sight: ProcessSight }> {
    return this.#follow(ctx, async (process) => {
      const channel = this.#stats.to(process.incarnation ?? '')
      const sight =
        wanted === 'all'
          ? await process.view.readAll(channel, ctx.clock, ctx.signal)
          : await process.view.read(wanted, channel, ctx.clock, ctx.signal)
      process.seenAt = ctx.clock.now()
      return { process, sight }
    })
  }

  #states(
    pools: ReadonlySet<string>,
    ctx: CallContext,
  ): Promise<{
    process: Process
    states: ReadonlyMap<string, ReadonlyMap<string, ServerState>>
  }> {
    return this.#follow(ctx, async (process) => {
      const channel = this.#stats.to(process.incarnation ?? '')
      return { process, states: await process.view.states(pools, channel, ctx.signal) }
    })
  }

  async #follow<T>(ctx: CallContext, look: (process: Process) => Promise<T>): Promise<T> {
    const until = ctx.clock.now() + HAND_OVER
    for (;;) {
      const process = this.#current ?? (await this.#first(ctx))
      try {
        return await look(process)
      } catch (error) {
        if (!(error instanceof AnotherProcess)) throw error
        const next = toProcess(error.info, ctx.clock.now())
        if (!this.#others.isOld(next.scope)) {
          this.#replace(process, this.#others.take(next.scope) ?? next)
          continue
        }
        // The predecessor answered once more: the reload is handing the socket over.
        if (ctx.clock.now() >= until) {
          throw new DrainableError(
            'CONFLICT',
            `${this.instance}: a process that was replaced by a reload still answers`,
            { provider: this.name, cause: error },
          )
        }
        await pause(ctx.clock, HAND_OVER_LOOK, ctx.signal)
      }
    }
  }

  async #first(ctx: CallContext): Promise<Process> {
    const { info } = await this.#stats.ask([], ctx.signal)
    this.#current ??= toProcess(info, ctx.clock.now())
    return this.#current
  }

  #replace(before: Process, next: Process): void {
    if (this.#current !== before) return // another call was first
    this.#others.demote(before)
    this.#current = next
    if (this.#master !== undefined) return
    if (next.seenAt - before.seenAt > UNSEEN_RELOAD) {
      this.#unseenSince = new Set([...this.#unseenSince, before.scope])
    }
    if (before.kept?.state !== 'open' && this.#facts !== undefined) {
      this.#facts = { ...this.#facts, neverReloaded: false }
      this.#bornAt = next.startedAt
    }
  }

  /**
   * Before the first change: a connection kept since before a reload goes on answering for the old
   * process, and lets its last request be seen to end. Without a master it is the only way there.
   */
  async #keepFirst(process: Process, ctx: CallContext): Promise<void> {
    try {
      await this.#ensureKept(process, ctx)
    } catch (error) {
      if (ctx.signal.aborted || this.#master === undefined || !isDrainableError(error)) throw error
    }
  }

  /** While something is held, also where it was held by an earlier run of ours, or by somebody else. */
  async #keep(process: Process, sight: ProcessSight, ctx: CallContext): Promise<void> {
    const held = [...sight.members.values()].some(({ own }) => own !== 'ready')
    if (!held && process.kept === undefined) return
    try {
      await this.#ensureKept(process, ctx)
    } catch (error) {
      // The look itself is good. The next one tries again.
      if (ctx.signal.aborted || !isDrainableError(error)) throw error
    }
  }

  async #ensureKept(process: Process, ctx: CallContext): Promise<void> {
    if (process.kept?.state === 'open') {
      if (process.kept.stale) await process.kept.run('show cli level', ctx.signal)
      return
    }
    const { replyTimeout } = this.#settings
    const kept = await KeptConnection.open(this.#socket, replyTimeout, ctx.signal)
    try {
      const info = await whoAnswers(kept, ctx.signal)
      if (toProcess(info, 0).scope !== process.scope) throw new AnotherProcess(info)
      process.kept = kept
    } catch (error) {
      kept.close()
      if (!(error instanceof AnotherProcess)) throw error
      throw new DrainableError('CONFLICT', `${this.instance} is being reloaded`, {
        provider: this.name,
        cause: error,
      })
    }
  }

  /** Every process that holds work for a member, or may. */
  #scopes(
    ref: MemberRef,
    process: Process,
    sight: ProcessSight,
    others: OtherSight,
    keep: boolean,
    ctx: CallContext,
  ): readonly LoadScope[] {
    const key = keyOf(ref)
    const seen: LoadScope[] = []
    const own = sight.members.get(key)
    if (own !== undefined || this.#memory.knows(ref, process.scope)) {
      seen.push(toScope(process, own, sight.sampledAt))
    }
    for (const other of others.read) {
      const there = other.sight.members.get(key)
      if (there === undefined && !this.#memory.knows(ref, other.process.scope)) continue
      seen.push({
        ...toScope(other.process, there, other.sight.sampledAt),
        // A worker that takes no changes over this socket yet is none to be proved idle.
        ...(other.old ? {} : { state: 'unread' as const }),
        inForce: there === undefined || there.own === 'drain' || there.own === 'maint',
        old: other.old,
        note: other.old
          ? 'a process of before a reload'
          : 'a worker that does not serve the socket yet',
      })
    }
    const { oldWorkers } = this.#settings
    const now = ctx.clock.now()
    const over =
      typeof oldWorkers === 'object' && now - this.#bornAt >= oldWorkers.within + WITHIN_MARGIN
    const unread = (scope: string, incarnation: string, note: string, ended: boolean): void => {
      seen.push({
        scope,
        incarnation,
        state: ended ? 'ended' : 'unread',
        sampledAt: sight.sampledAt,
        active: 0,
        queued: 0,
        inForce: false,
        old: true,
        note,
      })
    }
    for (const { process: old, note, listed } of others.unread) {
      if (!listed && !this.#memory.knows(ref, old.scope)) continue
      const passed =
        typeof oldWorkers === 'object' &&
        now - process.startedAt >= oldWorkers.within + WITHIN_MARGIN
      const ended = oldWorkers === 'accept' || (passed && !listed)
      unread(old.scope, old.incarnation ?? '', note, ended)
    }
    if (others.blind !== undefined) unread('old processes', '', others.blind, false)
    else if (this.#memory.knows(ref, 'old processes')) unread('old processes', '', '', true)
    const unseen = this.#unseenAtStart()
    if (unseen !== undefined && oldWorkers !== 'accept') {
      unread('processes of before', '', unseen, over)
    }
    return this.#memory.complete(ref, seen, (scope) => this.#others.hasEnded(scope), keep)
  }

  #present(
    ref: MemberRef,
    sight: Sight,
    scopes: readonly LoadScope[],
    followers: readonly MemberRef[],
  ): Reading {
    const { state, own, inherited } = sight
    const unverified = this.#unverified(scopes)
    const hints = toHints(sight, followers)
    const known = state.address !== '-'
    return {
      ref,
      present: true,
      identity: this.#identity(ref, state),
      ...(known ? { address: state.address, port: state.port } : {}),
      weight: state.weight,
      own,
      ...(inherited === undefined ? {} : { inherited }),
      serves: wouldServe(sight),
      health: toHealth(sight),
      scopes,
      native: {
        admin: state.admin,
        weight: state.weight,
        ...(followers.length === 0
          ? {}
          : { followers: followers.map(({ pool, member }) => ({ pool, member })) }),
      },
      ...(unverified === undefined ? {} : { unverified }),
      ...(hints.length === 0 ? {} : { hints }),
    }
  }

  /** A server from a name that lost its address is still the one it was. */
  readonly #identities = new Map<string, string>()
  #identity(ref: MemberRef, state: ServerState): string {
    const key = keyOf(ref)
    const before = this.#identities.get(key)
    if (state.address === '-' && state.resolved && before !== undefined) return before
    const identity = identityOf(state)
    this.#identities.set(key, identity)
    return identity
  }

  #unverified(scopes: readonly LoadScope[]): string | undefined {
    if (this.#settings.oldWorkers === 'accept') {
      const unseen = this.#unseenAtStart()
      if (unseen !== undefined) return unseen
      const given = scopes.find(
        ({ state, note }) => state === 'ended' && note?.startsWith('not readable'),
      )
      if (given !== undefined)
        return `${given.scope} is ${given.note ?? ''}, and oldWorkers is 'accept'`
    }
    if (scopes.some(({ scope }) => this.#unseenSince.has(scope))) {
      return `more than ${UNSEEN_RELOAD / 1_000} s passed between two looks while ${this.instance} was reloaded, another process may have come and gone between them: give the master socket as 'master'`
    }
    return undefined
  }
}

function keyOf(ref: MemberRef): string {
  return refKey({ pool: ref.pool, member: ref.member })
}

function toWanted(refs: readonly MemberRef[]): Wanted {
  const wanted = new Map<string, Set<string>>()
  for (const { pool, member } of refs) {
    // What HAProxy can't have in a name can't be there: it is never sent, and absent.
    if (!isName(pool) || !isName(member)) continue
    const names = wanted.get(pool) ?? new Set()
    wanted.set(pool, names.add(member))
  }
  return wanted
}

function toScope(process: Process, sight: Sight | undefined, sampledAt: number): LoadScope {
  const base = {
    scope: process.scope,
    incarnation: process.incarnation ?? '',
    state: 'read' as const,
    sampledAt,
    inForce: true,
  }
  // A server is deleted only once nothing is attached to it.
  if (sight === undefined) return { ...base, active: 0, queued: 0, released: true }
  const { active, queued, pooled, arrivals } = sight.row
  return { ...base, active, queued, pooled, arrivals }
}

function toPools(sight: ProcessSight, balancer: string | undefined): PoolReading[] {
  return [...sight.pools].map(([pool, { serving, total }]) => ({
    pool,
    ...(balancer === undefined ? {} : { balancer }),
    serving,
    total,
    whenNone: 'refuse',
  }))
}

function toHints({ row, inherited }: Sight, followers: readonly MemberRef[]): string[] {
  const hints: string[] = []
  if (followers.length > 0) {
    const names = followers.map(({ pool, member }) => `${pool}/${member}`).join(', ')
    hints.push(
      `${names} ${followers.length === 1 ? 'tracks it and takes' : 'track it and take'} its state too`,
    )
  }
  if (row.tracked !== '') {
    hints.push(
      `it tracks ${row.tracked}${inherited === undefined ? '' : ` and inherits '${inherited}' from it: only making ${row.tracked} ready opens it`}`,
    )
  }
  return hints
}
