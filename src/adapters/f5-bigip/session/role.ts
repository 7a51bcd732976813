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

/** Of a device that has no such thing, or a user who may not ask. */
const UNTOLD: RoleReading = { role: 'unknown', groups: [], text: 'not told' }

/** The role of one unit: what it is now, and what tells one life of the unit from the next. */
export class UnitRole {
  /** Whether it was ever seen active: only then can it hold work. */
  everActive = false
  /** How many lives of it were seen: a reboot or a change of role begins another. */
  lives = 0
  readonly #session: Session
  readonly #group: string | undefined
  /** What tells one life of it from the next: its role, and how long it has had it. */
  #role: Role = 'unknown'
  #life = ''
  /** Bounds of the moment the role began, by `performance.now()`. */
  #since: { readonly from: number; readonly to: number } | undefined
  /** The role that the unit has said last. */
  #said: RoleReading | undefined
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
    return `${this.#role} ${this.#life}`
  }

  /** Role and groups, as the unit says now. */
  async read(ctx: CallContext): Promise<RoleReading> {
    const found = await this.#session.get('/mgmt/tm/cm/failover-status', ctx, 'forbidden')
    this.#said = found === undefined ? UNTOLD : parseFailoverStatus(found)
    return this.#said
  }

  /** The role that a look goes by which does not ask for it; undefined where it must: a standby can become active. */
  get said(): RoleReading | undefined {
    return this.#said !== undefined && this.isActive(this.#said) ? this.#said : undefined
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
    this.#said = undefined
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
    const { host } = this.#session
    const asked = performance.now()
    this.#steady = undefined
    const ask = { method: 'GET', path: '/mgmt/tm/sys/failover', patient: false } as const
    const meaning = await this.#session.ask(ask, ctx)
    const text = meaning.kind === 'ok' ? this.#session.value(meaning, `GET ${ask.path}`) : undefined
    const told = text === undefined ? undefined : parseFailoverText(text)
    const role = told?.role ?? (await this.read(ctx)).role
    if (role !== before.role && role !== 'unknown' && before.role !== 'unknown') {
      const words = `${host} changed from ${before.role} to ${role} while it was read`
      throw new DrainableError('CONFLICT', words, { provider: PROVIDER })
    }
    // Once not told is no other life.
    this.#noteLife(role === 'unknown' ? before.role : role, told?.seconds, asked)
    if (told?.role === 'active') this.noteActive(before, ctx)
    if (this.isActive(before)) this.everActive = true
  }

  /**
   * Notes role and its age. The whole seconds that it tells bound the start; bounds that do not meet
   * mean another start.
   *
   * @param asked - before the device was asked, by `performance.now()`
   */
  #noteLife(role: Role, seconds: number | undefined, asked: number): void {
    const to = performance.now() - (seconds ?? 0) * 1_000
    const since = seconds === undefined ? undefined : { from: asked - (seconds + 1) * 1_000, to }
    const known = this.#since
    const isOther =
      since !== undefined && known !== undefined && (since.from > known.to || since.to < known.from)
    if (this.lives > 0 && role === this.#role && !isOther) {
      this.#since ??= since
      return
    }
    this.lives += 1
    this.#role = role
    this.#since = since
    const start = seconds === undefined ? 'an unknown time' : `about ${bucketOf(seconds)}`
    this.#life = `since ${start}${this.lives === 1 ? '' : ` #${this.lives}`}`
  }
}

/** When a role began, in steps this wide, so that two processes that look name it alike. */
const BUCKET = 600_000

function bucketOf(seconds: number): string {
  const start = Math.floor((Date.now() - seconds * 1_000) / BUCKET) * BUCKET
  return `${new Date(start).toISOString().slice(0, 16)}Z`
}
