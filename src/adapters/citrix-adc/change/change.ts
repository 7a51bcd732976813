import { carefulApply } from '../../../kit/careful-apply.js'
import type { CarefulAdapter, ChangeOf, ChangeOutcome, Later } from '../../../kit/change.js'
import type { CallContext, Change, ChangeResult } from '../../../provider/contract.js'
import { formatRef } from '../../../provider/member-ref.js'
import { Look, type Shared, type Standpoint } from './look.js'
import { add, remove } from './membership.js'
import { assertOurs, PROVIDER, refuse } from './ours.js'
import { Batch, type Task } from './batch.js'

type Started = ChangeOutcome | Later<Task>

/** Carries changes out: compare, ask for the role, write as few requests as can be, look where it is needed. */
export async function applyChanges(
  shared: Shared,
  changes: readonly Change[],
  ctx: CallContext,
): Promise<readonly ChangeResult[]> {
  const { settings, looks, sender } = shared
  const work = new Work(shared)
  try {
    const results = await carefulApply(work, changes, ctx)
    const applied = results.some(({ status }) => status === 'applied')
    if (applied && settings.save) await sender.save(work.last.charge, ctx)
    return results
  } finally {
    // Whatever was written, what was read before is of before.
    looks.forget()
  }
}

/** What a Citrix ADC is sent for the changes of one call. */
class Work implements CarefulAdapter<Standpoint, Task> {
  readonly provider = PROVIDER
  readonly #shared: Shared
  #last: Look | undefined

  constructor(shared: Shared) {
    this.#shared = shared
  }

  /** What the changes go by: there is one before there is a change. */
  get last(): Look {
    if (this.#last === undefined) throw new TypeError('a change without a look')
    return this.#last
  }

  absent({ ref }: Change): string {
    return `${formatRef(ref)}: neither a service group with that member ('server:port'; 'address:port' where DNS makes several of one server) nor a virtual server with that service`
  }

  async look(
    changes: readonly Change[],
    ctx: CallContext,
  ): Promise<(change: Change) => Standpoint | undefined> {
    const look = new Look(this.#shared, await this.#shared.pair.confirm(ctx), ctx)
    await look.at(
      changes.map(({ ref }) => ref),
      changes.some(({ kind }) => kind !== 'restore'),
    )
    this.#last = look
    const found = new Map(changes.map(({ ref }) => [ref, look.of(ref)]))
    return ({ ref }) => found.get(ref)
  }

  hold(change: ChangeOf<'hold'>, found: Standpoint): Started {
    return this.#begin(change, found, change.to)
  }

  restore(change: ChangeOf<'restore'>, found: Standpoint): Started {
    const { entry } = found
    if (change.to === 'drain' && entry.phase === 'out') {
      // There is no way from OUT OF SERVICE back to TROFS but through service: it stays closed.
      assertOurs(change, found, this.#shared.settings)
      this.#shared.memory.rename(entry.subject, 'drain', entry)
      return { status: 'applied' }
    }
    return this.#begin(change, found, change.to)
  }

  #begin(change: Change, found: Standpoint, to: 'drain' | 'maint' | 'ready'): Started {
    assertOurs(change, found, this.#shared.settings)
    const way = to === 'ready' ? 'open' : to === 'drain' ? 'drain' : 'close'
    return later({ change, found, way, as: to === 'maint' ? 'maint' : 'drain', sent: false })
  }

  /** A disable without grace cuts what is established, where downStateFlush is on. */
  terminate(change: ChangeOf<'terminate'>, found: Standpoint): Started {
    assertOurs(change, found, this.#shared.settings)
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
    return later({ change, found, way: 'close', as: own, sent: false })
  }

  remove(change: ChangeOf<'remove'>, found: Standpoint): Promise<ChangeOutcome> {
    return remove(change, found, this.last)
  }

  add(change: ChangeOf<'add'>): Promise<ChangeOutcome> {
    return add(change, this.last)
  }

  finish(begun: Parameters<Batch['finish']>[0]): ReturnType<Batch['finish']> {
    return new Batch(this.last).finish(begun)
  }
}

function later(task: Task): Later<Task> {
  return { later: task, sent: () => task.sent }
}
