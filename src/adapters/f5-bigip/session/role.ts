import type { CallContext } from '../../../provider/contract.js'
import { DrainableError } from '../../../provider/error.js'
import {
  parseFailoverStatus,
  parseFailoverText,
  type Role,
  type RoleReading,
} from '../codec/device.js'
import { PROVIDER, type Session } from './session.js'

/** For how long a change goes by the role that a look has read, in milliseconds: the next look tells whether it was right. */
const ROLE_FOR = 5_000

/** The role of one unit: what it is now, and what tells one life of the unit from the next. */
export class UnitRole {
  /** Whether it was ever seen active: only then can it hold work. */
  everActive = false
  readonly #session: Session
  readonly #group: string | undefined
  readonly #life = new Life()
  /** The role that the last look ended with, where the unit tells how long it has had it. */
  #steady: RoleReading | undefined
  #steadyAt = -Infinity

  /** @param group - the traffic group that counts; undefined: any */
  constructor(session: Session, group: string | undefined) {
    this.#session = session
    this.#group = group
  }

  /** Changes when counters may have been lost, or connections with the role. */
  get incarnation(): string {
    return this.#life.incarnation
  }

  /** How many lives of it were seen: a reboot or a change of role begins another. */
  get lives(): number {
    return this.#life.count
  }

  /** Role and groups, as the unit says now. */
  async read(ctx: CallContext): Promise<RoleReading> {
    const meaning = await this.#session.ask(
      { method: 'GET', path: '/mgmt/tm/cm/failover-status' },
      ctx,
    )
    if (meaning.kind === 'absent' || meaning.kind === 'forbidden') {
      return { role: 'unknown', groups: [], text: this.#session.clean(meaning.message) }
    }
    if (meaning.kind !== 'ok')
      throw this.#session.toError(meaning, 'GET /mgmt/tm/cm/failover-status')
    return parseFailoverStatus(this.#session.value(meaning, 'GET /mgmt/tm/cm/failover-status'))
  }

  /**
   * The role that the last look ended with, taken as it is until the end of this one: by then the unit
   * tells for how long it has had it. Undefined where it must be asked first.
   */
  get steady(): RoleReading | undefined {
    return this.#group === undefined ? this.#steady : undefined
  }

  /** The role as a look has read it, or as the unit says now: once a look, not once a change. */
  async recent(ctx: CallContext): Promise<RoleReading> {
    const recent = ctx.clock.now() < this.#steadyAt + ROLE_FOR ? this.#steady : undefined
    return recent ?? this.read(ctx)
  }

  /** A role that was just read, for the look that follows. */
  noteActive(role: RoleReading, { clock }: CallContext): void {
    this.#steady = role.role === 'active' ? role : undefined
    this.#steadyAt = clock.now()
  }

  /** The unit did not answer as it did before: its role is asked first the next time. */
  doubt(): void {
    this.#steady = undefined
  }

  /** Whether a unit of that role passes traffic; a device that doesn't tell is taken for one of its own. */
  isActive(reading: RoleReading): boolean {
    const trafficGroup = this.#group
    const active = reading.role === 'active' || reading.role === 'unknown'
    if (!active || trafficGroup === undefined || reading.groups.length === 0) return active
    return reading.groups.includes(trafficGroup)
  }

  /**
   * Reads how long the role has lasted, after counters were read: a role that began after they were
   * asked for makes them worthless.
   *
   * @throws `CONFLICT` where the role changed since `before`
   */
  async confirm(before: RoleReading, ctx: CallContext): Promise<void> {
    const asked = performance.now()
    this.#steady = undefined
    const meaning = await this.#session.ask(
      { method: 'GET', path: '/mgmt/tm/sys/failover', patient: false },
      ctx,
    )
    const told =
      meaning.kind === 'ok'
        ? parseFailoverText(this.#session.value(meaning, 'GET /mgmt/tm/sys/failover'))
        : undefined
    const role = told?.role ?? (await this.read(ctx)).role
    if (role !== before.role && role !== 'unknown' && before.role !== 'unknown') {
      throw new DrainableError(
        'CONFLICT',
        `${this.#session.host} changed from ${before.role} to ${role} while it was read`,
        { provider: PROVIDER },
      )
    }
    this.#life.note(before.role, told?.seconds, asked)
    this.#steady = told?.role === 'active' && before.role === 'active' ? before : undefined
    this.#steadyAt = ctx.clock.now()
    if (this.isActive(before)) this.everActive = true
  }

  /** A cumulative counter fell: the traffic processes began anew, or a client reset statistics. */
  noteReset(): void {
    this.#life.noteReset()
  }
}

/** Start of a role is told in steps this wide, so that two processes that look name it alike. */
const BUCKET = 600_000

/** What tells one life of a unit from the next: its role, how long it has had it, and counters that began anew. */
class Life {
  #role: Role = 'unknown'
  /** Bounds of the moment the role began, by `performance.now()`. */
  #since: { readonly from: number; readonly to: number } | undefined
  #name = ''
  #count = 0
  #resets = 0

  /** Changes when counters may have been lost, or connections with the role. */
  get incarnation(): string {
    const resets = this.#resets === 0 ? '' : `, counters reset ${this.#resets} times`
    return `${this.#role} ${this.#name}${resets}`
  }

  /** How many were seen: a reboot or a change of role begins another. */
  get count(): number {
    return this.#count
  }

  /** A cumulative counter fell: the traffic processes began anew, or statistics were reset. */
  noteReset(): void {
    this.#resets += 1
  }

  /**
   * Notes role and its age. The whole seconds that it tells bound the start; bounds that no longer meet
   * mean another start.
   *
   * @param asked - before the device was asked, by `performance.now()`
   */
  note(role: Role, seconds: number | undefined, asked: number): void {
    const now = performance.now()
    const since =
      seconds === undefined
        ? undefined
        : { from: asked - (seconds + 1) * 1_000, to: now - seconds * 1_000 }
    const known = this.#since
    const moved =
      since !== undefined && known !== undefined && (since.from > known.to || since.to < known.from)
    if (this.#name === '' || role !== this.#role || moved) {
      this.#count += 1
      this.#role = role
      this.#since = since
      this.#name = nameOf(seconds, this.#count)
      return
    }
    if (since === undefined) return
    this.#since =
      known === undefined
        ? since
        : { from: Math.max(since.from, known.from), to: Math.min(since.to, known.to) }
  }
}

function nameOf(seconds: number | undefined, lives: number): string {
  const again = lives === 1 ? '' : ` #${lives}`
  if (seconds === undefined) return `since an unknown time${again}`
  const start = Math.floor((Date.now() - seconds * 1_000) / BUCKET) * BUCKET
  return `since about ${new Date(start).toISOString().slice(0, 16)}Z${again}`
}
