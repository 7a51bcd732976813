import type { CallContext, Change, ChangeResult, Json, MemberRef } from '../../provider/contract.js'
import { DrainableError } from '../../provider/error.js'
import { formatRef, refKey } from '../../provider/member-ref.js'
import { PROVIDER } from './api.js'
import type { DurableMarks } from './durable.js'
import { configStamp, readNative, weightOf } from './member.js'
import { askServer, putServer } from './put-server.js'
import type { Found, Round } from './round.js'
import { rejected, type Step } from './step.js'
import type { Tools } from './tools.js'

/** Undoes holds: only where the expected state is found, and only what was changed. */
export class Restorer {
  readonly #tools: Tools
  readonly #marks: DurableMarks
  /** Weights that we set to 0 at run time, as they were. */
  readonly #weights = new Map<string, number>()

  constructor(tools: Tools, marks: DurableMarks) {
    this.#tools = tools
    this.#marks = marks
  }

  /** Undoes, where the expected state is found. */
  async restore(
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
      if (to !== 'ready') return { ref, status: 'unchanged' }
      const cleared = durable && (await this.#marks.clear(ref, change.native, siblings, ctx))
      const weighed = await this.weightBack(ref, change.native, ctx)
      return { ref, status: cleared || weighed ? 'applied' : 'unchanged' }
    }
    if (own !== expect) {
      const what = own === 'unknown' ? (doubt ?? 'a state that is not known') : `'${own}'`
      return rejected(
        ref,
        'CONFLICT',
        `${formatRef(ref)}: expected '${expect}', found ${what}; nothing was touched`,
      )
    }
    const kept = await this.#keepBackupSessions(change, found, round, ctx)
    if (kept !== undefined && 'status' in kept) return kept
    // to ready too: weight and maintenance in one write could open it with its weight, and cut backups
    const marked = found.rows.every((row) => row.weight === 0)
    if (durable && own === 'maint' && (to === 'drain' || marked)) {
      await this.#marks.leaveMaintenance(ref, change.native, ctx)
    }
    if (durable && to === 'ready') await this.#marks.clear(ref, change.native, siblings, ctx)
    const answer = await askServer(this.#tools.api, ref, to, ctx)
    if (to === 'ready' && answer.refused === undefined) {
      await this.weightBack(ref, change.native, ctx)
    }
    return { ref, wished: to, exactly: true, ...answer }
  }

  /**
   * With `on-marked-up shutdown-backup-sessions`, a server that leaves maint cuts the sessions on
   * the backend's backup servers, unless its weight is 0 at that moment.
   */
  async #keepBackupSessions(
    { ref, native }: Change & { readonly kind: 'restore' },
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
    this.#weights.set(refKey(ref), readNative(native)?.weight ?? weightOf(found))
    await putServer(this.#tools.api, ref, { weight: 0 }, ctx)
    await putServer(this.#tools.api, ref, { admin_state: 'ready' }, ctx)
    return undefined
  }

  /** Gives back a weight that was set to 0 for the opening. Returns whether there was one. */
  async weightBack(ref: MemberRef, native: Json | undefined, ctx: CallContext): Promise<boolean> {
    const ours = this.#weights.get(refKey(ref))
    if (ours === undefined) return false
    const weight = readNative(native)?.weight ?? ours
    await putServer(this.#tools.api, ref, { weight }, ctx)
    this.#weights.delete(refKey(ref))
    return true
  }

  /** Sets maint, where that cuts nothing: what the API misreads as ready already, it then sends. */
  async byWayOfMaint(ref: MemberRef, round: Round, ctx: CallContext): Promise<void> {
    const { settings, configuration } = this.#tools
    const stamp = configStamp(round)
    const gentle =
      settings.maintCuts === undefined
        ? (await configuration.servers(ref.pool, stamp, ctx))(ref.member).maint === 'gentle'
        : !settings.maintCuts
    if (!gentle) {
      throw new DrainableError(
        'REJECTED',
        `${formatRef(ref)}: 'ready' did not show, and the way by maint may cut its sessions: set maintCuts: false if it does not`,
        { provider: PROVIDER, ref },
      )
    }
    await putServer(this.#tools.api, ref, { admin_state: 'maint' }, ctx)
  }
}

function siblingsOf(ref: MemberRef, round: Round): readonly Found[] {
  return [...(round.pools.get(ref.pool) ?? [])].flatMap(([member, found]) =>
    member === ref.member ? [] : [found],
  )
}
