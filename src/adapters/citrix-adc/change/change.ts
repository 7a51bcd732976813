import { carefulApply } from '../../../kit/careful-apply.js'
import type { Begun, CarefulAdapter, ChangeOf, ChangeOutcome, Later } from '../../../kit/change.js'
import type { CallContext, Change, ChangeResult } from '../../../provider/contract.js'
import { formatRef } from '../../../provider/member-ref.js'
import { unbindMember, unbindService } from '../codec/membership.js'
import { disable, enable } from '../codec/nitro.js'
import type { Settings } from '../options.js'
import { add, assertNoDesiredState } from './add.js'
import { Batch, type Means, refuse, type Standpoint, type Task } from './batch.js'

type Started = ChangeOutcome | Later<Task>

/** Carries changes out: compare, ask for the role, write as few requests as can be, look where it is needed. */
export class Writer {
  readonly #means: Means

  constructor(means: Means) {
    this.#means = means
  }

  /** What went half well, for whoever asks why. */
  get hints(): readonly string[] {
    return this.#means.sender.hints
  }

  async apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]> {
    const { looks, options, sender } = this.#means
    let last: Batch | undefined
    const batch = (): Batch => {
      if (last === undefined) throw new TypeError('a change without a look')
      return last
    }
    const adapter: CarefulAdapter<Standpoint, Task> = {
      provider: 'citrix-adc',
      look: async (looked) => {
        last = new Batch(this.#means, await this.#means.pair.confirm(ctx), ctx)
        const refs = looked.map(({ ref }) => ref)
        await last.look(
          refs,
          looked.some(({ kind }) => kind !== 'restore'),
        )
        const found = new Map(refs.map((ref) => [ref, batch().of(ref)]))
        return ({ ref }) => found.get(ref)
      },
      absent: ({ ref }) =>
        `${formatRef(ref)}: neither a service group with that member ('server:port'; 'address:port' where DNS makes several of one server) nor a virtual server with that service`,
      hold: (change, found) => hold(change, found, batch()),
      restore: (change, found) => restore(change, found, batch()),
      terminate: (change, found) => terminate(change, found, batch()),
      remove: (change, found) => remove(change, found, batch()),
      add: (change) => add(change, batch()),
      finish: (begun) => finish(batch(), begun),
    }
    try {
      const results = await carefulApply(adapter, changes, ctx)
      const applied = results.some(({ status }) => status === 'applied')
      if (last !== undefined && applied && options.save) await sender.save(batch().charge, ctx)
      return results
    } finally {
      // Whatever was written, what was read before is of before.
      looks.forget()
    }
  }
}

/**
 * What is sent for a change that the rules allow.
 *
 * | change | found | sent |
 * |---|---|---|
 * | to `ready` | | an enable |
 * | to `drain` | | a graceful disable |
 * | restore to `drain` | OUT OF SERVICE | nothing: no way leads back to TROFS but through service |
 * | to `maint` | drained, without work as far as that is known | nothing: see `Batch` |
 * | to `maint` | anything else | a disable without grace |
 * | `terminate` | out of drain or maint, where a disable cuts | a disable without grace |
 * | `remove` | not in service | an unbind |
 */
function hold(change: ChangeOf<'hold' | 'restore'>, found: Standpoint, batch: Batch): Started {
  assertOurs(change, found, batch.means.options)
  const { to } = change
  const { entry, own, load } = found
  const { subject } = entry
  if (to === 'ready') return later({ change, found, way: 'open', command: enable(subject) })
  const command = disable(subject, to === 'drain')
  if (to === 'drain') return later({ change, found, way: 'drain', command })
  // What is not counted may be work: it is waited for as well, and never cut for a seal.
  const maySeal = own === 'drain' && (entry.phase === 'out' || load === undefined || load === 0)
  return later({ change, found, way: maySeal ? 'seal' : 'close', as: 'maint', command })
}

function restore(change: ChangeOf<'restore'>, found: Standpoint, batch: Batch): Started {
  const { subject, phase } = found.entry
  if (change.to !== 'drain' || phase !== 'out') return hold(change, found, batch)
  assertOurs(change, found, batch.means.options)
  batch.means.memory.did(subject, 'drain')
  return { status: 'applied' }
}

/** A disable without grace cuts what is established, where downStateFlush is on. */
function terminate(change: Change, found: Standpoint, batch: Batch): Started {
  assertOurs(change, found, batch.means.options)
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
  return later({ change, found, way: 'close', as: own, command: disable(entry.subject, false) })
}

/** Unbinds a member from its group, or a service from its virtual server. */
function remove(change: Change, found: Standpoint, batch: Batch): Promise<ChangeOutcome> {
  const { ref } = change
  const { phase, subject } = found.entry
  assertOurs(change, found, batch.means.options)
  if (phase === 'in') {
    const words = `${formatRef(ref)} is in service, and an unbind cuts what is on it: hold it first`
    throw refuse('CONFLICT', words, ref, false)
  }
  const command =
    subject.kind === 'service'
      ? unbindService(ref.pool, subject.name)
      : unbindMember(subject.group, subject.server, subject.port)
  return batch.carry({ change, found, way: 'unbind', command, sent: false })
}

function later(one: Omit<Task, 'sent'>): Later<Task> {
  const task = { ...one, sent: false }
  return { later: task, sent: () => task.sent }
}

async function* finish(
  batch: Batch,
  begun: readonly Begun<Standpoint, Task>[],
): AsyncGenerator<readonly [Begun<Standpoint, Task>, ChangeOutcome | 'again']> {
  const of = new Map(begun.map((one) => [one.later, one]))
  for await (const [task, outcome] of batch.end(begun.map((one) => one.later))) {
    batch.ctx.signal.throwIfAborted()
    const one = of.get(task)
    if (one !== undefined) yield [one, outcome]
  }
}

/** Members that are not ours to change one by one. */
function assertOurs({ ref }: Change, { entry, traits }: Standpoint, settings: Settings): void {
  const { subject } = entry
  if (subject.kind === 'member' && subject.address !== undefined) {
    const words = `${formatRef(ref)}: several members of the group have server '${subject.server}' and port ${subject.port} (made by DNS), and an action would hit all of them: take its address out of DNS, with autoDisableGraceful and autoDelayedTrofs set on the group`
    throw refuse('UNSUPPORTED', words, ref)
  }
  assertNoDesiredState(ref, traits, settings)
}
