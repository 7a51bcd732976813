import type { ServerLine } from './haproxy-config.js'

/** Bits of HAProxy's admin mask. */
export const MASK = {
  maint: 0x01,
  inheritedMaint: 0x02,
  configMaint: 0x04,
  drain: 0x08,
  inheritedDrain: 0x10,
  resolution: 0x20,
} as const
const IN_MAINT = MASK.maint | MASK.inheritedMaint | MASK.resolution
const IN_DRAIN = MASK.drain | MASK.inheritedDrain

/** The address that HAProxy shows: a name stands for this machine. */
function resolved(address: string): string {
  return /^[\w.-]*[a-z][\w.-]*$/i.test(address) ? '127.0.0.1' : address
}

/** One server of the HAProxy in memory: states, checks and counts. */
export class MemoryServer {
  readonly name: string
  readonly id: number
  readonly backup: boolean
  readonly rise: number
  readonly fall: number
  readonly inter: number
  readonly cutsWhenDown: boolean
  readonly track: string | undefined
  readonly initialWeight: number
  address: string
  port: number
  /** What the statistics show: a server that was just added shows 1 until its state or weight is set. */
  shownWeight: number
  mask = 0
  checked: boolean
  scur = 0
  qcur = 0
  /** The most that were queued at once. */
  qmax = 0
  readonly maxconn: number | undefined
  stot = 0
  wretr = 0
  /** Changes when its streams were cut: a client that holds one then holds nothing. */
  epoch = 0
  #weight: number
  #forced: 'down' | 'stopping' | undefined
  /** When its state last changed, and how many checks it had to its credit then. */
  #since = Date.now()
  #credit: number

  constructor(line: ServerLine, id: number, added: boolean) {
    const number = (key: string, other: number): number => {
      const value = line[key]
      return typeof value === 'number' ? value : other
    }
    this.name = line.name
    this.id = id
    this.address = resolved(String(line['address'] ?? ''))
    this.port = number('port', 0)
    this.#weight = this.initialWeight = number('weight', 1)
    this.shownWeight = added ? 1 : this.#weight
    this.rise = number('rise', 2)
    this.fall = number('fall', 3)
    this.inter = number('inter', 2_000)
    this.maxconn = number('maxconn', 0) || undefined
    this.backup = line['backup'] === 'enabled'
    this.cutsWhenDown = line['on-marked-down'] === 'shutdown-sessions'
    this.track = typeof line['track'] === 'string' ? line['track'] : undefined
    // a check of a server added at run time starts only by "enable health"
    this.checked = !added && line['check'] === 'enabled'
    // the fake's world is one where every check has passed already
    this.#credit = this.rise + this.fall - 1
    if (added) this.mask = MASK.maint
    else if (line['maintenance'] === 'enabled') this.mask = MASK.maint | MASK.configMaint
    if (this.mask !== 0) this.#credit = 0
  }

  get weight(): number {
    return this.#weight
  }

  set weight(value: number) {
    this.#weight = this.shownWeight = value
  }

  get inMaint(): boolean {
    return (this.mask & IN_MAINT) !== 0
  }

  get drained(): boolean {
    return (this.mask & IN_DRAIN) !== 0
  }

  /** HAProxy's operational state: 0 stopped, 2 running, 3 stopping. */
  get op(): 0 | 2 | 3 {
    if (this.inMaint) return 0
    if (this.#forced === undefined || this.#recovered) return 2
    return this.#forced === 'down' ? 0 : 3
  }

  /** The check's credit: from `rise` on it is up. */
  get health(): number {
    if (this.inMaint) return 0
    if (!this.checked) return this.rise + this.fall - 1
    if (this.op === 0) return 0
    return Math.min(this.rise + this.fall - 1, this.#credit + this.#passed)
  }

  get status(): string {
    if (this.mask & MASK.resolution) return 'MAINT (resolution)'
    if (this.mask & MASK.inheritedMaint) return `MAINT (via ${this.track ?? 'unknown'})`
    if (this.mask & MASK.maint) return 'MAINT'
    if (this.op === 0) return 'DOWN'
    if (this.op === 3) return 'NOLB'
    const below = this.checked && this.health < this.rise + this.fall - 1
    const fraction = below ? ` ${this.health - this.rise + 1}/${this.fall}` : ''
    if (this.drained) return `DRAIN${fraction}`
    return this.checked ? `UP${fraction}` : 'no check'
  }

  get usable(): boolean {
    return this.op === 2 && !this.drained && this.weight > 0
  }

  get lastChange(): number {
    return Math.floor((Date.now() - this.#since) / 1_000)
  }

  setState(to: 'ready' | 'drain' | 'maint'): void {
    const kept = this.mask & ~(MASK.maint | MASK.drain)
    const was = this.inMaint
    this.shownWeight = this.#weight
    if (to === 'ready') this.mask = kept
    if (to === 'drain') this.mask = kept | MASK.drain
    if (to === 'maint') this.mask = kept | MASK.maint
    if (to === 'maint' && !was) {
      this.#changed(0)
      if (this.cutsWhenDown) this.cut()
    }
    if (was && to !== 'maint' && (kept & IN_MAINT) === 0) {
      this.#forced = undefined
      this.#changed(this.rise)
    }
  }

  /** What it gets from the server it tracks. */
  inherit(bits: number): void {
    this.mask = (this.mask & ~(MASK.inheritedMaint | MASK.inheritedDrain)) | bits
  }

  setHealth(to: 'up' | 'down' | 'stopping'): void {
    this.#forced = to === 'up' ? undefined : to
    this.#changed(to === 'down' ? 0 : this.rise + this.fall - 1)
  }

  cut(): void {
    this.scur = 0
    this.epoch += 1
  }

  get #passed(): number {
    return Math.floor((Date.now() - this.#since) / this.inter)
  }

  /** A checked server that was called down by hand is put up again by its checks. */
  get #recovered(): boolean {
    return this.checked && this.#forced === 'down' && this.#passed >= this.rise
  }

  #changed(credit: number): void {
    this.#since = Date.now()
    this.#credit = credit
  }
}
