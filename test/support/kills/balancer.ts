import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CallContext, Change, Clock, MemberRef, Snapshot, Ticket } from 'drainable'
import { fakeProvider, type FakeProvider } from 'drainable/testing'
import { TICKET, type Answer, type Ask, type Said, type WireResult } from './wire.js'

/** What becomes of the changes that are on their way when the child is killed. */
export type Fate = 'done' | 'half' | 'lost' | 'late'

export interface BalancerOptions {
  readonly folder: string
  readonly instance: string
  readonly fate: Fate
  /** A request is in flight on the first member, and ends at this look of each process. */
  readonly busyUntil?: number
  /** A reload comes before this look. */
  readonly reloadAt?: number
}

const LATE = 60

/** Nothing here waits: the fake answers at once. */
const clock: Clock = {
  now: () => performance.now(),
  setTimeout: () => () => undefined,
}

/** The balancer of one child: a fake one, asked from outside, that watches over what is said of it. */
export class Balancer implements AsyncDisposable {
  readonly lb: FakeProvider
  /** Every rule that was broken. */
  readonly broken: string[] = []
  /** The points that the child has passed. */
  readonly points: string[] = []
  readonly #options: BalancerOptions
  #work = Promise.resolve()
  #late: readonly Change[] = []
  #end: (() => void) | undefined
  #looks = 0
  #reloaded = false

  constructor(options: BalancerOptions) {
    this.#options = options
    const { instance } = options
    const pools = { web: ['web1', 'web2', 'web3', 'web4'] }
    this.lb = fakeProvider({ pools, instance, capabilities: { lateBound: LATE } })
    if (options.busyUntil !== undefined) this.#end = this.lb.occupy({ pool: 'web', member: 'web1' })
  }

  /** What the child says, in its order. */
  hear(said: Said, answer: (answer: Answer) => void): void {
    if (said.verb === 'point') {
      this.points.push(said.label)
      return
    }
    this.#work = this.#work
      .then(async () => {
        if (said.verb !== 'idle') return this.#answer(said, answer)
        for (const ref of said.refs) this.judgeIdle(ref)
      })
      .catch((error: unknown) => {
        this.broken.push(`the balancer failed: ${String(error)}`)
      })
  }

  /** Resolves when all that the child had sent was done. */
  done(): Promise<void> {
    return this.#work
  }

  /** From now on the process with the fake itself goes on. Late changes come after its first look. */
  handOver(): void {
    this.#looks = 0
    const observe = this.lb.observe.bind(this.lb)
    this.lb.observe = async (refs, ctx) => {
      const snapshot = await this.#look(() => observe(refs, ctx))
      for (const change of this.#late) await this.#execute(change)
      this.#late = []
      return snapshot
    }
  }

  /** Checks a word of idle, at the moment it is given. */
  judgeIdle(ref: MemberRef): void {
    const load = this.lb.load(ref)
    if (load > 0) this.broken.push(`${ref.member} was called idle with ${load} in flight`)
  }

  get isLate(): boolean {
    return this.#late.length > 0
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lb.close()
  }

  async #answer(ask: Ask, say: (answer: Answer) => void): Promise<void> {
    const { id, verb } = ask
    switch (verb) {
      case 'describe':
        say({ id, value: await this.lb.describe(context()) })
        return
      case 'observe':
        say({ id, value: await this.#look(() => this.lb.observe(ask.refs, context())) })
        return
      case 'apply':
        for (const [index, change] of this.#carriedOut(ask).entries())
          say({ id, index, result: await this.#execute(change) })
        say({ id, value: null })
        return
      default:
        verb satisfies never
    }
  }

  #carriedOut({ changes, dying }: Ask & { readonly verb: 'apply' }): readonly Change[] {
    const { fate } = this.#options
    if (!dying || fate === 'done') return changes
    if (fate === 'half') return changes.slice(0, changes.length / 2)
    if (fate === 'late') this.#late = changes
    return []
  }

  async #look(observe: () => Promise<Snapshot>): Promise<Snapshot> {
    const { busyUntil, reloadAt } = this.#options
    this.#looks += 1
    if (reloadAt === this.#looks && !this.#reloaded) {
      this.#reloaded = true
      this.lb.reload()
    }
    if (busyUntil !== undefined && this.#looks >= busyUntil) this.#end?.()
    return observe()
  }

  async #execute(change: Change): Promise<WireResult> {
    const { ref, kind } = change
    if (kind === 'hold' && !isAnnounced(this.ticketFile, ref, change.to))
      this.broken.push(`${ref.member} was held before a ticket said so`)
    const [result] = await this.lb.apply([change], context())
    if (result === undefined || 'error' in result)
      return { ref, rejected: result?.error.message ?? 'no result' }
    return result
  }

  get ticketFile(): string {
    return join(this.#options.folder, `${TICKET}.json`)
  }
}

/** Whether the file on the disk says at this moment that the member is, or may be, held by us. */
export function isAnnounced(file: string, ref: MemberRef, to: string): boolean {
  if (!existsSync(file)) return false
  const ticket = JSON.parse(readFileSync(file, 'utf8')) as Ticket
  const member = ticket.members.find((each) => each.ref.member === ref.member)
  if (member === undefined) return false
  const { set, earlier, doubted, intended, late } = member
  const sent = [...late, ...(intended === null ? [] : [intended])]
  const sentTo = sent.map((each) => ('to' in each ? each.to : null))
  return [set, ...earlier, ...doubted, ...sentTo].some((state) => state === to)
}

function context(): CallContext {
  return { signal: new AbortController().signal, clock }
}
