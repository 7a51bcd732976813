import { carefulApply } from '../../../kit/careful-apply.js'
import type { Begun, CarefulAdapter, ChangeOf, ChangeOutcome, Later } from '../../../kit/change.js'
import type { CallContext, Change, ChangeResult } from '../../../provider/contract.js'
import { formatRef } from '../../../provider/member-ref.js'
import type { Memory } from '../read/memory.js'
import type { Looks } from '../read/looks.js'
import { Look, type Standpoint } from './look.js'
import type { Settings } from '../options.js'
import type { Pair } from '../session/pair.js'
import { add, remove } from './membership.js'
import { assertOurs, PROVIDER, refuse } from './ours.js'
import { Batch, type Task } from './batch.js'
import { Sender } from './sender.js'

type Started = ChangeOutcome | Later<Task>

/** Carries changes out: compare, ask for the role, write as few requests as can be, look where it is needed. */
export class Writer {
  readonly #options: Settings
  readonly #pair: Pair
  readonly #memory: Memory
  readonly #looks: Looks
  readonly #sender: Sender

  constructor(options: Settings, pair: Pair, memory: Memory, looks: Looks) {
    this.#options = options
    this.#pair = pair
    this.#memory = memory
    this.#looks = looks
    this.#sender = new Sender(pair)
  }

  /** What went half well, for whoever asks why. */
  get hints(): readonly string[] {
    return this.#sender.hints
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    const batches: Batch[] = []
    try {
      const results = await carefulApply(this.#adapter(batches), changes, ctx)
      const applied = results.some(({ status }) => status === 'applied')
      const charge = batches.at(-1)?.context.charge
      if (charge !== undefined && applied && this.#options.save) {
        await this.#sender.save(charge, ctx)
      }
      return results
    } finally {
      // Whatever was written, what was read before is of before.
      this.#looks.forget()
    }
  }

  #adapter(batches: Batch[]): CarefulAdapter<Standpoint, Task> {
    return {
      provider: PROVIDER,
      look: async (changes, ctx) => {
        const charge = await this.#pair.confirm(ctx)
        const look = new Look(this.#looks, charge, this.#memory, ctx)
        await look.at(
          changes.map(({ ref }) => ref),
          changes.some(({ kind }) => kind !== 'restore'),
        )
        batches.push(
          new Batch({
            options: this.#options,
            pair: this.#pair,
            memory: this.#memory,
            sender: this.#sender,
            look,
            charge,
            ctx,
          }),
        )
        const found = new Map(changes.map(({ ref }) => [ref, look.of(ref)]))
        return ({ ref }) => found.get(ref)
      },
      absent: ({ ref }) =>
        `${formatRef(ref)}: neither a service group with that member ('server:port'; 'address:port' where DNS makes several of one server) nor a virtual server with that service`,
      hold: (change, found) => this.#begin(change, found, change.to),
      restore: (change, found) => this.#restore(change, found),
      terminate: (change, found) => this.#terminate(change, found),
      remove: (change, found) => remove(change, found, latest(batches).context),
      add: (change) => add(change, latest(batches).context),
      finish: (begun, ctx) => finish(latest(batches), begun, ctx),
    }
  }

  #begin(change: Change, found: Standpoint, to: 'drain' | 'maint' | 'ready'): Started {
    assertOurs(change, found, this.#options)
    const way = to === 'ready' ? 'open' : to === 'drain' ? 'drain' : 'close'
    return later({ change, found, way, as: to === 'maint' ? 'maint' : 'drain', sent: false })
  }

  #restore(change: ChangeOf<'restore'>, found: Standpoint): Started {
    const { entry } = found
    if (change.to === 'drain' && entry.phase === 'out') {
      // There is no way from OUT OF SERVICE back to TROFS but through service: it stays closed.
      assertOurs(change, found, this.#options)
      this.#memory.rename(entry.subject, 'drain', entry)
      return { status: 'applied' }
    }
    return this.#begin(change, found, change.to)
  }

  /** A disable without grace cuts what is established, where downStateFlush is on. */
  #terminate(change: Change, found: Standpoint): Started {
    assertOurs(change, found, this.#options)
    const { ref } = change
    const { entry, traits, own, load } = found
    const name = formatRef(ref)
    if (own === 'unknown') {
      const why = `${name} is '${entry.svrstate}', which says nothing about its state, nothing was sent`
      throw refuse('CONFLICT', why, ref, true) // the next look may say more
    }
    if (own === 'ready') {
      const why = `${name} is in service, what would be cut comes back at once: hold it first`
      throw refuse('CONFLICT', why, ref, false)
    }
    if (entry.phase === 'out') {
      if (load === 0) return { status: 'unchanged', terminated: 0 }
      if (load === undefined && traits.flush !== false) return { status: 'unchanged' }
    }
    if (traits.flush === false) {
      const why = `${name} cannot be cut: downStateFlush is DISABLED there, so that connections outlive a disable; enable it, or wait`
      throw refuse('UNSUPPORTED', why, ref)
    }
    const as = own === 'maint' ? 'maint' : 'drain'
    return later({ change, found, way: 'close', as, sent: false })
  }
}

function later(task: Task): Later<Task> {
  return { later: task, sent: () => task.sent }
}

function latest(batches: readonly Batch[]): Batch {
  const batch = batches.at(-1)
  if (batch === undefined) throw new TypeError('a change without a look')
  return batch
}

async function* finish(
  batch: Batch,
  begun: readonly Begun<Standpoint, Task>[],
  { signal }: CallContext,
): AsyncGenerator<readonly [Begun<Standpoint, Task>, ChangeOutcome]> {
  const of = new Map(begun.map((one) => [one.later, one]))
  for await (const [task, outcome] of batch.end(begun.map(({ later }) => later))) {
    signal.throwIfAborted()
    const one = of.get(task)
    if (one !== undefined) yield [one, outcome]
  }
}
