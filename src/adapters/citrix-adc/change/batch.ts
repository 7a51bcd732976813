import type { ChangeOutcome, Sight } from '../../../kit/change.js'
import { caught, refusal } from '../../../kit/errors.js'
import { until } from '../../../kit/until.js'
import type { CallContext, Change, MemberRef } from '../../../provider/contract.js'
import type { DrainableError, ErrorCode } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import type { Command } from '../codec/nitro.js'
import type { Entry, SvrPhase, Traits } from '../codec/rows.js'
import type { Settings } from '../options.js'
import { Index, wishesOf } from '../read/match.js'
import type { Looks } from '../read/looks.js'
import { keyOf, type Memory } from '../read/memory.js'
import { ownState } from '../read/reading.js'
import type { InCharge, Pair } from '../session/pair.js'
import type { Failed, Sender, Written } from './sender.js'

/** How long members without work may take to go OUT OF SERVICE by themselves: the appliance looks once a second. */
const SELF_SEAL = { every: 250, within: 3_000 } as const
/** How long a disable without grace, which takes effect at once, may take to show. */
const SHOWS = { every: 250, within: 1_000 } as const
/** Changes in one request: one that is lost leaves no more than these open. */
const LIST = 10

/**
 * How a change is made, and what shows that it was.
 *
 * | way | what is sent | shows |
 * |---|---|---|
 * | `drain` | a graceful disable | TROFS, or OUT OF SERVICE |
 * | `close` | a disable without grace | OUT OF SERVICE |
 * | `seal` | nothing: it is waited for | OUT OF SERVICE |
 * | `open` | an enable | in service |
 * | `bind`, `unbind` | a binding, or its end | it is there, or is not |
 * | `make` | a server or a service, or that it goes | nothing: no look is for it |
 */
export type Way = 'drain' | 'close' | 'seal' | 'open' | 'bind' | 'unbind' | 'make'

const SHOWN: Readonly<Record<Way, (phase: SvrPhase | undefined) => boolean>> = {
  drain: (phase) => phase === 'trofs' || phase === 'out',
  close: (phase) => phase === 'out',
  seal: (phase) => phase === 'out',
  open: (phase) => phase === 'in',
  bind: (phase) => phase !== undefined,
  unbind: (phase) => phase === undefined,
  make: () => false,
}

/** A change that was let through, and what is to be sent for it. */
export interface Task {
  readonly change: Change
  /** Undefined for what is not there yet. */
  readonly found: Standpoint | undefined
  readonly way: Way
  readonly command: Command
  /** What OUT OF SERVICE means then. @default 'drain' */
  readonly as?: 'drain' | 'maint'
  /** Something that changes it was sent. */
  sent: boolean
}

/** A member as it was right before a change of it. */
export interface Standpoint extends Sight {
  readonly entry: Entry
  readonly traits: Traits
  /** In flight and queued; undefined where it could not be read. */
  readonly load: number | undefined
}

/** What became of a task. `again`: it is to be judged and sent once more, alone. */
type Ended = readonly [task: Task, outcome: ChangeOutcome | 'again']

/** What every batch of one provider works with. */
export interface Means {
  readonly options: Settings
  readonly pair: Pair
  readonly memory: Memory
  readonly looks: Looks
  readonly sender: Sender
}

/** A refusal of one change, its words naming the member. */
export function refuse(
  code: ErrorCode,
  words: string,
  ref: Change['ref'],
  retryable?: boolean,
): DrainableError {
  return refusal(code, words, { provider: 'citrix-adc', ref }, retryable)
}

/** Changes that one look let through, carried out together; that look, and those that follow. */
export class Batch {
  readonly means: Means
  readonly charge: InCharge
  readonly ctx: CallContext
  readonly #pools = new Map<string, Index>()
  #stamp = 0

  constructor(means: Means, charge: InCharge, ctx: CallContext) {
    this.means = means
    this.charge = charge
    this.ctx = ctx
  }

  /** Reads every pool of these, with the counts where a change asks for them. */
  async look(refs: readonly MemberRef[], counts = true): Promise<void> {
    const { looks, memory } = this.means
    const wishes = wishesOf(refs)
    this.#stamp = memory.stamp()
    const options = { fresh: true, counts }
    const { pools } = await looks.at(wishes, this.charge.session, this.ctx, options)
    for (const pool of wishes.keys()) this.#pools.delete(pool)
    for (const pool of pools) this.#pools.set(pool.name, new Index(pool))
  }

  /** The member as the last look showed it. */
  of(ref: MemberRef): Standpoint | undefined {
    const found = this.#pools.get(ref.pool)?.pick(ref.member)
    if (found === undefined) return undefined
    const { entry, traits, counts, serverDisabled } = found
    const { identity, svrstate, subject, address, port } = entry
    const ours = this.means.memory.recall(entry, this.#stamp, this.charge.standing.incarnation)
    const { own } = ownState(entry, ours, serverDisabled || traits.disabled)
    const load = counts === undefined ? undefined : counts.active + counts.queued
    const doubt = 'that word says nothing about it'
    const at = address === undefined ? {} : { address, port }
    // A service can be in the pools of several virtual servers: what is written through one holds in all.
    const sight = { identity, own, says: svrstate, doubt, passing: true, object: keyOf(subject) }
    return { ...sight, ...at, entry, traits, load }
  }

  /** Carries one change out, for which others wait. */
  async carry(task: Task): Promise<ChangeOutcome> {
    for await (const [, outcome] of this.#send([task])) if (outcome !== 'again') return outcome
    throw new TypeError('a change without an outcome')
  }

  async *end(tasks: readonly Task[]): AsyncGenerator<Ended> {
    const left = new Set(tasks)
    for await (const ended of this.#forgetClients(tasks)) {
      left.delete(ended[0])
      yield ended
    }
    yield* this.#seal([...left].filter(({ way }) => way === 'seal'))
    const most = this.means.sender.lists === 'none' ? 1 : LIST
    const others = [...left].filter(({ way }) => way !== 'seal')
    for (const list of listsOf(others, most)) yield* this.#send(list)
  }

  /**
   * Deletes the persistence entries of the virtual servers of what is to be closed, on the caller's word.
   * Where that is refused nothing of it is closed.
   */
  async *#forgetClients(tasks: readonly Task[]): AsyncGenerator<Ended> {
    const { options, sender } = this.means
    const closing = tasks.filter(
      (task) => task.way === 'close' || (task.way === 'seal' && !this.#shows(task)),
    )
    if (options.persistence !== 'forget' || closing.length === 0) return
    const { charge, ctx } = this
    const forget = async (): Promise<undefined> => {
      const subjects = closing.flatMap(({ found }) => found?.entry.subject ?? [])
      await sender.forget(subjects, charge, ctx)
    }
    const error = await caught(ctx, forget, (thrown) => thrown)
    if (error === undefined) return
    for (const task of closing) {
      const { ref } = task.change
      const words = `${formatRef(ref)}: the persistence entries were not deleted, so it was not disabled: ${error.message}`
      yield [task, { status: 'rejected', error: refuse(error.code, words, ref, error.retryable) }]
    }
  }

  /**
   * Members of ours in TROFS or out of service close the door by themselves, so a seal is waited for and
   * never sent. One that clients with a persistence entry keep is left.
   */
  async *#seal(tasks: readonly Task[]): AsyncGenerator<Ended> {
    const before = tasks.filter((task) => this.#shows(task))
    const open = tasks.filter((task) => !before.includes(task))
    if (open.length > 0) await this.#watch(SELF_SEAL, open)
    const { options, memory } = this.means
    for (const task of tasks) {
      if (!this.#shows(task)) {
        yield [task, { status: 'rejected', error: notDisabledTwice(task) }]
        continue
      }
      if (task.found !== undefined) memory.did(task.found.entry.subject, 'maint')
      const isOurs = options.persistence === 'forget' && !before.includes(task)
      yield [task, { status: isOurs ? 'applied' : 'unchanged' }]
    }
  }

  /** Looks at these until all of them show what is wanted, or the time is over. */
  async #watch(
    often: { readonly every: number; readonly within: number },
    tasks: readonly Task[],
    wanted = tasks,
  ): Promise<void> {
    await until(this.ctx, often, async () => {
      await this.look(tasks.map(({ change }) => change.ref))
      return wanted.every((task) => this.#shows(task)) || undefined
    })
  }

  #shows({ change, way }: Task): boolean {
    return SHOWN[way](this.of(change.ref)?.entry.phase)
  }

  /** Sends some of one kind, and looks at what became of those that are not simply done. */
  async *#send(tasks: readonly Task[]): AsyncGenerator<Ended> {
    for (const task of tasks) task.sent = true
    const written = await this.means.sender.send(tasks, this.charge, this.ctx)
    const open = new Map<Task, Written>()
    for (const [i, task] of tasks.entries()) {
      const one = written[i] ?? 'done'
      if (typeof one === 'object' && one.status === 'rejected') {
        yield [task, one]
        continue
      }
      const { found, way, as = 'drain' } = task
      const entry = found?.entry
      if (way === 'drain' && entry !== undefined) {
        this.means.memory.did(entry.subject, as, entry.phase === 'in')
      }
      if (one === 'done' && way !== 'close') yield [task, this.#applied(task)]
      else open.set(task, one)
    }
    if (open.size > 0) yield* this.#verify(open)
  }

  /**
   * Looks at what became of changes whose answer was lost or says nothing of them, and at those that take
   * effect at once.
   */
  async *#verify(open: ReadonlyMap<Task, Written>): AsyncGenerator<Ended> {
    const { sender, pair } = this.means
    const tasks = [...open.keys()]
    const closing = tasks.filter((task) => open.get(task) === 'done')
    const watch = (): Promise<void> => this.#watch(SHOWS, tasks, closing)
    const error = await caught(this.ctx, watch, (thrown) => thrown)
    const lost = tasks.filter((task) => typeof open.get(task) === 'object')
    // What a node shows that is not in charge any more may be its own alone.
    const isShown = error === undefined && lost.some((task) => this.#shows(task))
    const isHeld = isShown && (await pair.holds(this.charge, this.ctx))
    const apart = tasks.filter((task) => open.get(task) === 'apart')
    const isDone = ({ change, found }: Task): boolean =>
      this.of(change.ref)?.entry.phase !== found?.entry.phase
    if (apart.length > 0 && error === undefined) {
      const isProved = apart.every((task) => this.#shows(task) && isDone(task))
      sender.lists = isProved ? 'proved' : 'none'
    }
    for (const [task, one] of open) {
      const shows = error === undefined && this.#shows(task)
      if (one === 'apart') {
        if (error !== undefined) yield [task, { status: 'unknown', error }]
        else yield [task, shows && isDone(task) ? this.#applied(task) : 'again']
      } else if (one !== 'done') yield [task, shows && isHeld ? this.#applied(task) : one]
      else if (shows || error !== undefined) yield [task, this.#applied(task)]
      else yield [task, this.#notClosed(task)]
    }
  }

  #applied({ change, found, way, as = 'drain' }: Task): ChangeOutcome {
    const { memory } = this.means
    const subject = found?.entry.subject
    if (subject !== undefined) {
      if (way === 'close') memory.did(subject, as, false)
      // A service that is unbound here can be bound, and held, elsewhere.
      if (way === 'open' || (way === 'unbind' && subject.kind === 'member')) memory.forget(subject)
    }
    const load = change.kind === 'terminate' ? found?.load : undefined
    return { status: 'applied', ...(load === undefined ? {} : { terminated: load, atMost: true }) }
  }

  /** The appliance said Done to a disable without grace, and it does not show. */
  #notClosed({ change: { ref }, found }: Task): Failed {
    const left = this.of(ref)?.entry
    const why = `${formatRef(ref)}: the appliance said Done to a disable without grace and left it '${left?.svrstate ?? 'gone'}'`
    // In TROFS some build may take a second disable for nothing: then nothing was cut or closed.
    return left?.phase === found?.entry.phase
      ? { status: 'rejected', error: refuse('REJECTED', why, ref, false) }
      : { status: 'unknown', error: refuse('CONFLICT', why, ref) }
  }
}

/** In order; what follows each other and goes to one path goes in one list. */
function listsOf(tasks: readonly Task[], most: number): readonly (readonly Task[])[] {
  const lists: Task[][] = []
  for (const task of tasks) {
    const list = lists.at(-1)
    if (list?.[0]?.command.path === task.command.path && list.length < most) list.push(task)
    else lists.push([task])
  }
  return lists
}

function notDisabledTwice({ change: { ref }, found }: Task): DrainableError {
  if (found?.load === undefined) {
    const why = `${formatRef(ref)} is in TROFS, and its connections could not be counted: it was not disabled without grace, which would cut them; look at its statistics, or wait`
    return refuse('CONFLICT', why, ref, true)
  }
  const words = `${formatRef(ref)} is in TROFS without work and was not disabled once more: what that does is not documented. It goes OUT OF SERVICE when the last client with a persistence entry is gone, or set trofsPersistence to DISABLED on the virtual server, or persistence: 'forget' here`
  return refuse('UNSUPPORTED', words, ref)
}
