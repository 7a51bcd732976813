import type { Begun, ChangeOutcome } from '../../../kit/change.js'
import { caught } from '../../../kit/errors.js'
import { until } from '../../../kit/until.js'
import type { Change } from '../../../provider/contract.js'
import type { DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { disable, enable } from '../codec/nitro.js'
import type { SvrPhase } from '../codec/rows.js'
import type { Look, Standpoint } from './look.js'
import { refuse } from './ours.js'
import type { Order, Written } from './sender.js'

/** How long members without work may take to go OUT OF SERVICE by themselves: the appliance looks once a second. */
const SELF_SEAL = { every: 250, within: 3_000 } as const
/** How long a disable without grace, which takes effect at once, may take to show. */
const SHOWS = { every: 250, within: 1_000 } as const
/** Changes in one request: one that is lost leaves no more than these open. */
const LIST = 10

/** A change that was let through, and what is to be sent for it. */
export interface Task {
  readonly change: Change
  readonly found: Standpoint
  /** A graceful disable, one without grace, an enable. */
  readonly way: 'drain' | 'close' | 'open'
  /** What OUT OF SERVICE means then. */
  readonly as: 'drain' | 'maint'
  /** Something that changes it was sent. */
  sent: boolean
}

type One = Begun<Standpoint, Task>
type Ended = readonly [task: Task, outcome: ChangeOutcome]

const SHOWN: Readonly<Record<Task['way'], (phase: SvrPhase) => boolean>> = {
  drain: (phase) => phase === 'trofs' || phase === 'out',
  close: (phase) => phase === 'out',
  open: (phase) => phase === 'in',
}

/** Changes that one look let through, carried out together. */
export class Batch {
  readonly #look: Look

  constructor(look: Look) {
    this.#look = look
  }

  async *finish(begun: readonly One[]): AsyncGenerator<readonly [One, ChangeOutcome]> {
    const open = new Map(begun.map((one) => [one.later, one]))
    for await (const [task, outcome] of this.#end([...open.keys()])) {
      const one = open.get(task)
      if (one !== undefined) yield [one, outcome]
    }
  }

  async *#end(tasks: readonly Task[]): AsyncGenerator<Ended> {
    const left = new Set(tasks)
    for await (const ended of this.#waitOut(tasks)) {
      left.delete(ended[0])
      yield ended
    }
    for (const ended of await this.#forgetClients([...left])) {
      left.delete(ended[0])
      yield ended
    }
    const most = this.#look.shared.sender.lists === 'none' ? 1 : LIST
    for (const list of listsOf([...left], most)) yield* this.#send(list)
  }

  /**
   * Members of ours in TROFS or out of service close the door by themselves, so a seal is waited for and
   * never sent. One that clients with a persistence entry keep busy is disabled without grace: it is left.
   */
  async *#waitOut(tasks: readonly Task[]): AsyncGenerator<Ended> {
    const waiting = tasks.filter(mayClose)
    const resting = waiting.filter((task) => this.#isOut(task) || !this.#isBusy(task))
    await this.#untilOut(resting)
    const stuck = resting.filter((task) => !this.#isOut(task))
    for (const task of resting) if (!stuck.includes(task)) yield this.#closed(task, 'unchanged')
    const refused = await this.#forgetClients(stuck)
    yield* refused
    if (refused.length > 0) return
    if (this.#look.shared.settings.persistence === 'forget') await this.#untilOut(stuck)
    for (const task of stuck) {
      if (this.#isOut(task)) yield this.#closed(task, 'applied')
      else yield [task, { status: 'rejected', error: notDisabledTwice(task) }]
    }
  }

  /** Whether work was seen on it lately. */
  #isBusy({ found }: Task): boolean {
    const { ctx, shared } = this.#look
    const { memory, settings } = shared
    const { load, entry } = found
    if (load === undefined) return false
    return load > 0 || memory.restedFor(entry.subject, ctx.clock.now()) < settings.freshness
  }

  #isOut({ change }: Task): boolean {
    return this.#look.of(change.ref)?.entry.phase === 'out'
  }

  #closed(task: Task, status: 'applied' | 'unchanged'): Ended {
    const entry = this.#look.of(task.change.ref)?.entry ?? task.found.entry
    this.#look.shared.memory.rename(entry.subject, 'maint', entry)
    return [task, { status }]
  }

  async #untilOut(tasks: readonly Task[]): Promise<void> {
    const open = (): readonly Task[] => tasks.filter((task) => !this.#isOut(task))
    let looks = 0
    await until(this.#look.ctx, SELF_SEAL, async () => {
      const refs = open().map(({ change }) => change.ref)
      if (looks > 0 && refs.length > 0) await this.#look.at(refs)
      looks += 1
      return open().length === 0 || undefined
    })
  }

  /**
   * Deletes the persistence entries of the virtual servers of what is to be closed, on the caller's word.
   * Where that is refused nothing of it is closed.
   *
   * @returns what was refused
   */
  async #forgetClients(tasks: readonly Task[]): Promise<readonly Ended[]> {
    const { charge, ctx, shared } = this.#look
    const { sender, settings } = shared
    const closing = tasks.filter(({ way }) => way === 'close')
    if (settings.persistence !== 'forget' || closing.length === 0) return []
    const entries = closing.map(({ found }) => found.entry)
    const forget = (): Promise<DrainableError | undefined> => sender.forget(entries, charge, ctx)
    const error = await caught(ctx, forget, (thrown) => thrown)
    if (error === undefined) return []
    return closing.map((task): Ended => {
      const { ref } = task.change
      const words = `${formatRef(ref)}: the persistence entries were not deleted, so it was not disabled: ${error.message}`
      const refused = refuse(error.code, words, ref, error.retryable)
      return [task, { status: 'rejected', error: refused }]
    })
  }

  /** Sends some of one kind, and looks at what became of those that are not simply done. */
  async *#send(tasks: readonly Task[]): AsyncGenerator<Ended> {
    const { charge, ctx, shared } = this.#look
    const { sender } = shared
    for (const task of tasks) task.sent = true
    const written = await sender.send(tasks.map(toOrder), charge, ctx)
    const isUntried = tasks.length > 1 && sender.lists === 'untried'
    if (written === 'apart' || (isUntried && written.every((one) => one === 'done'))) {
      yield* this.#sendApart(tasks)
      return
    }
    const open = new Map<Task, Written>()
    for (const [i, task] of tasks.entries()) {
      const one = written[i] ?? 'done'
      if (one !== 'done' && (one.status === 'rejected' || one.astray === true)) {
        yield [task, { status: one.status, error: one.error }]
        continue
      }
      if (one === 'done' && task.way !== 'close') yield this.#entered(task, { status: 'applied' })
      else open.set(task, one)
    }
    if (open.size > 0) yield* this.#verify(open)
  }

  /**
   * A list was refused as a whole, or is the first that was not: each that does not show that it was
   * carried out is sent alone.
   */
  async *#sendApart(tasks: readonly Task[]): AsyncGenerator<Ended> {
    const look = this.#look
    const { sender } = look.shared
    const read = (): Promise<void> => look.at(tasks.map(({ change }) => change.ref))
    const error = await caught(look.ctx, read, (thrown) => thrown)
    if (error !== undefined) {
      for (const task of tasks) yield this.#entered(task, { status: 'unknown', error })
      return
    }
    const shown = ({ change, found, way }: Task): boolean => {
      const phase = look.of(change.ref)?.entry.phase
      return phase !== undefined && phase !== found.entry.phase && SHOWN[way](phase)
    }
    const rest = tasks.filter((task) => !shown(task))
    if (sender.lists === 'untried') sender.lists = rest.length === 0 ? 'proved' : 'none'
    for (const task of tasks) {
      if (rest.includes(task)) yield* this.#send([task])
      else yield this.#entered(task, applied(task))
    }
  }

  /** Remembers what was done, or may have been. */
  #entered(task: Task, outcome: ChangeOutcome): Ended {
    const { memory } = this.#look.shared
    const { found, way, as } = task
    const { entry } = found
    if (way === 'open') memory.forget(entry.subject)
    else memory.did(entry.subject, as, way === 'drain' && entry.phase === 'in')
    return [task, outcome]
  }

  /** Looks at what became of changes whose answer was lost, and at those that take effect at once. */
  async *#verify(open: ReadonlyMap<Task, Written>): AsyncGenerator<Ended> {
    const look = this.#look
    const tasks = [...open.keys()]
    const closing = tasks.filter((task) => open.get(task) === 'done')
    const shown = ({ change, way }: Task): boolean => {
      const found = look.of(change.ref)
      return found !== undefined && SHOWN[way](found.entry.phase)
    }
    const watch = (): Promise<true | undefined> =>
      until(look.ctx, SHOWS, async () => {
        await look.at(tasks.map(({ change }) => change.ref))
        return closing.every(shown) || undefined
      })
    if ((await caught(look.ctx, watch, () => 'unread')) === 'unread') {
      for (const [task, written] of open) {
        yield this.#entered(task, written === 'done' ? applied(task) : written)
      }
      return
    }
    const lost = tasks.filter((task) => open.get(task) !== 'done')
    const ours = lost.some(shown) && (await look.holds())
    for (const [task, written] of open) {
      const isShown = shown(task) && (written === 'done' || ours)
      if (isShown) yield this.#entered(task, applied(task))
      else yield written === 'done' ? this.#notClosed(task) : this.#entered(task, written)
    }
  }

  /** The appliance said Done to a disable without grace, and it does not show. */
  #notClosed(task: Task): Ended {
    const { change, found } = task
    const left = this.#look.of(change.ref)?.entry
    const why = `${formatRef(change.ref)}: the appliance said Done to a disable without grace and left it '${left?.svrstate ?? 'gone'}'`
    // In TROFS some build may take a second disable for nothing: then nothing was cut or closed.
    if (left?.phase === found.entry.phase)
      return [task, { status: 'rejected', error: refuse('REJECTED', why, change.ref, false) }]
    return this.#entered(task, { status: 'unknown', error: refuse('CONFLICT', why, change.ref) })
  }
}

/**
 * Whether it can be out of service by itself: it is on its way there, and without work as far as that is
 * known. What is not counted may be work: it is waited for as well, and never cut for a seal.
 */
function mayClose({ change, way, found }: Task): boolean {
  if (way !== 'close' || change.kind === 'terminate' || found.own !== 'drain') return false
  return found.entry.phase === 'out' || found.load === undefined || found.load === 0
}

function applied({ change, found: { load } }: Task): ChangeOutcome {
  if (change.kind !== 'terminate' || load === undefined) return { status: 'applied' }
  return { status: 'applied', terminated: load, atMost: true }
}

function toOrder({ change, found: { entry }, way }: Task): Order {
  const command = way === 'open' ? enable(entry.subject) : disable(entry.subject, way === 'drain')
  return { change, command, undo: entry.phase === 'in' ? enable(entry.subject) : undefined }
}

/** In order; what follows each other and goes to one path goes in one list. */
function listsOf(tasks: readonly Task[], most: number): readonly (readonly Task[])[] {
  const lists: Task[][] = []
  let path = ''
  for (const task of tasks) {
    const list = lists.at(-1)
    const { command } = toOrder(task)
    if (list === undefined || command.path !== path || list.length >= most) lists.push([task])
    else list.push(task)
    ;({ path } = command)
  }
  return lists
}

function notDisabledTwice({ change, found }: Task): DrainableError {
  if (found.load === undefined) {
    const why = `${formatRef(change.ref)} is in TROFS, and its connections could not be counted: it was not disabled without grace, which would cut them; look at its statistics, or wait`
    return refuse('CONFLICT', why, change.ref, true)
  }
  const words = `${formatRef(change.ref)} is in TROFS without work and was not disabled once more: what that does is not documented. It goes OUT OF SERVICE when the last client with a persistence entry is gone, or set trofsPersistence to DISABLED on the virtual server, or persistence: 'forget' here`
  return refuse('UNSUPPORTED', words, change.ref)
}
