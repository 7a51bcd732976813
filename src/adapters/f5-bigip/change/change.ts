import { carefulApply } from '../../../kit/careful-apply.js'
import type {
  Begun,
  CarefulAdapter,
  ChangeOf,
  ChangeOutcome,
  Later,
  SeenMember,
} from '../../../kit/change.js'
import { caught, refusal } from '../../../kit/errors.js'
import type { CallContext, Change, ChangeResult } from '../../../provider/contract.js'
import { isDrainableError, type DrainableError } from '../../../provider/error.js'
import { atLeast, formatRef } from '../../../provider/member-ref.js'
import { Turnstile } from '../../../kit/turnstile.js'
import { wordsOf } from '../codec/members.js'
import type { Settings } from '../options.js'
import type { Hints } from '../read/hints.js'
import { lowest } from '../read/reading.js'
import type { Resolver, Target } from '../read/target.js'
import type { Device } from '../session/device.js'
import { PROVIDER } from '../session/session.js'
import { terminate } from './connections.js'
import { add, remove } from './membership.js'
import { forgetRecords } from './persistence.js'
import { findPlaces, readLists, type Lists, type Place } from './places.js'
import { StateChange, type Wish } from './state-change.js'
import type { AfterChange } from './sync.js'

/** A member or node on every active unit, as the rules of a change see it. */
interface Found extends SeenMember {
  readonly target: Target
  readonly places: readonly Place[]
  /** The same on units that passed traffic before, where it is open on those that do now. */
  readonly passed?: readonly Place[]
}

export interface WriterOptions {
  readonly settings: Settings
  readonly resolver: Resolver
  readonly hints: Hints
  readonly afterChange: AfterChange
  readonly devices: readonly Device[]
  /**
   * The units that pass traffic: changes belong there.
   *
   * @param recent - the role that a look has just read will do
   */
  readonly active: (ctx: CallContext, recent: boolean) => Promise<readonly Device[]>
}

/** Makes changes, and what is to follow them. */
export async function applyChanges(
  options: WriterOptions,
  changes: readonly Change[],
  ctx: CallContext,
): Promise<readonly ChangeResult[]> {
  const { afterChange, hints } = options
  // The next look shows where a hold went; a cut, a removal and an addition end with their answer.
  const recent = changes.every(({ kind }) => kind === 'hold' || kind === 'restore')
  const work = new Work(options, recent)
  try {
    const results = await carefulApply(work, changes, ctx)
    // Members come or go: what was listed is old.
    if (changes.some(({ kind }) => kind === 'add' || kind === 'remove'))
      for (const device of work.devices) device.forget()
    if (work.isTouched) {
      for (const device of work.devices) await afterChange.after(device, ctx)
      hints.general = afterChange.pending
    }
    if (results.some(({ status }) => status === 'unknown')) afterChange.missed()
    return results
  } catch (error) {
    // Given up in the middle: what was done until then was not pushed or saved
    for (const device of work.devices) device.forget()
    if (work.isSent) afterChange.missed()
    throw error
  }
}

type One = Begun<Found, StateChange>

/** What BIG-IP is sent for the changes of one call. */
class Work implements CarefulAdapter<Found, StateChange> {
  readonly provider = PROVIDER
  /** The units that the changes go to. */
  devices: readonly Device[] = []
  readonly #options: WriterOptions
  readonly #recent: boolean
  readonly #begun: StateChange[] = []
  readonly #turn = new Turnstile()
  #isSent = false
  #isTouched = false

  constructor(options: WriterOptions, recent: boolean) {
    this.#options = options
    this.#recent = recent
  }

  /** Whether a change of the configuration may have been made. */
  get isSent(): boolean {
    return this.#isSent || this.#begun.some(({ isSent }) => isSent)
  }

  /** Whether the configuration of a unit was changed, be it put back again. */
  get isTouched(): boolean {
    return this.#isTouched || this.#begun.some(({ isTouched }) => isTouched)
  }

  absent({ ref }: Change): string {
    return `${formatRef(ref)} is not there`
  }

  async look(
    changes: readonly Change[],
    ctx: CallContext,
  ): Promise<(change: Change) => Found | undefined> {
    const { active, afterChange, resolver } = this.#options
    // The role is read once a call: it does not change with each write.
    if (this.devices.length === 0) {
      const devices = await active(ctx, this.#recent)
      if (devices[0] !== undefined) await afterChange.before(devices[0], ctx)
      this.devices = devices
    }
    const targets = changes.map(({ ref }) => resolver.target(ref))
    const lists = await readLists(this.devices, resolver, targets, ctx)
    const found = new Map<Change, Found | DrainableError | undefined>()
    for (const change of changes) found.set(change, await this.#find(change, lists, ctx))
    return (change) => {
      const one = found.get(change)
      if (isDrainableError(one)) throw one
      return one
    }
  }

  /** @returns an error where the name means several, or different ones on the units */
  async #find(
    change: Change,
    lists: Lists,
    ctx: CallContext,
  ): Promise<Found | DrainableError | undefined> {
    const { resolver } = this.#options
    const target = resolver.target(change.ref)
    try {
      const places = await findPlaces(lists, resolver, target, ctx)
      // A unit that lacks it is sent the addition, and the others say that they have it.
      if (change.kind === 'add' && places.length < lists.size) return undefined
      const found = toFound(change, target, places)
      if (found === undefined || isDrainableError(found)) return found
      const isOpened = change.kind === 'restore' && change.to === 'ready' && found.own === 'ready'
      return isOpened ? { ...found, passed: await this.#passed(target, ctx) } : found
    } catch (error) {
      if (isDrainableError(error, 'INVALID_OPTIONS')) return error
      throw error
    }
  }

  /** What an undo is to reach beside the active units; one that can't be asked now is left. */
  async #passed(target: Target, ctx: CallContext): Promise<readonly Place[]> {
    const { devices, resolver } = this.#options
    const places: Place[] = []
    for (const device of devices) {
      if (!device.role.everActive || this.devices.includes(device)) continue
      const find = async (): Promise<readonly Place[]> => {
        const lists = await readLists([device], resolver, [target], ctx)
        return findPlaces(lists, resolver, target, ctx)
      }
      places.push(...(await caught(ctx, find, () => [])))
    }
    return places.filter(({ own }) => own === 'drain' || own === 'maint')
  }

  /** Ready on the active units is not all that was asked for where another one would take it out again. */
  readonly isSo = (change: Change, { passed = [] }: Found, same: boolean): boolean =>
    same && !(change.kind === 'restore' && passed.length > 0)

  async hold(
    change: ChangeOf<'hold'>,
    found: Found,
    ctx: CallContext,
  ): Promise<Later<StateChange>> {
    const { to } = change
    const { places } = found
    if (to === 'maint') await this.#forget(change, places, ctx)
    return this.#begin({ places, to, needed: (own) => !atLeast(own, to) })
  }

  restore(change: ChangeOf<'restore'>, found: Found): Later<StateChange> {
    const { to, native, expect } = change
    const { places, passed = [] } = found
    // What an earlier one got done is left as it is.
    const half = expect !== to && lowest(places.map(({ own }) => own)) === to
    const needed = (own: Place['own']): boolean => (half ? own === expect : own !== to)
    return this.#begin({ places: [...places, ...passed], to, native, needed })
  }

  #begin(wish: Wish): Later<StateChange> {
    const later = new StateChange(wish, this.#turn)
    this.#begun.push(later)
    return { later, sent: () => later.isSent }
  }

  async terminate(
    change: ChangeOf<'terminate'>,
    { target, places }: Found,
    ctx: CallContext,
  ): Promise<ChangeOutcome> {
    const { settings, hints } = this.#options
    const forget = (): Promise<void> => this.#forget(change, places, ctx)
    const how = { freshness: settings.freshness, forget }
    const { outcome, note } = await terminate(target, places, how, ctx)
    if (outcome.status === 'applied') {
      const cut =
        'connections were cut by address and port: those that came through other pools too'
      hints.note(change.ref, 'cut', note === undefined ? cut : `${cut}; ${note}`)
    }
    return outcome
  }

  remove(
    change: ChangeOf<'remove'>,
    { target, places }: Found,
    ctx: CallContext,
  ): Promise<ChangeOutcome> {
    return this.#alone(() => remove(change, target, places, ctx))
  }

  add(change: ChangeOf<'add'>, _found: undefined, ctx: CallContext): Promise<ChangeOutcome> {
    const target = this.#options.resolver.target(change.ref)
    return this.#alone(() => add(this.devices, target, change, ctx))
  }

  /** All of them at once: which waits to be read back keeps the others waiting for nothing. */
  async *finish(
    begun: readonly One[],
    ctx: CallContext,
  ): AsyncGenerator<readonly [One, ChangeOutcome]> {
    const open = new Map(begun.map((one) => [one, this.#outcome(one, ctx)]))
    for (const each of open.values()) each.catch(() => undefined) // where one fails, none is waited for
    while (open.size > 0) {
      const ended = await Promise.race(open.values())
      open.delete(ended[0])
      yield ended
    }
  }

  async #outcome(one: One, ctx: CallContext): Promise<readonly [One, ChangeOutcome]> {
    const { change, later } = one
    const outcome = await later.make(ctx)
    const isUndone = change.kind === 'restore' && outcome.status === 'applied'
    if (isUndone) this.#options.hints.forget(change.ref)
    return [one, outcome]
  }

  /** Deletes persistence records, where the caller wants that. */
  async #forget({ ref }: Change, places: readonly Place[], ctx: CallContext): Promise<void> {
    const { settings, hints } = this.#options
    if (settings.persistence !== 'forget') return
    const said = await Promise.all(places.map((place) => forgetRecords(place, ctx)))
    hints.note(ref, 'persistence', said.join('; '))
  }

  async #alone(send: () => Promise<ChangeOutcome>): Promise<ChangeOutcome> {
    this.#isSent = true
    const outcome = await send()
    if (outcome.status === 'applied') this.#isTouched = true
    return outcome
  }
}

/** @returns `CONFLICT` where the units mean different ones, and the change does not say which */
function toFound(
  change: Change,
  target: Target,
  places: readonly Place[],
): Found | DrainableError | undefined {
  const [first] = places
  if (first === undefined) return undefined
  const own = lowest(places.map((place) => place.own))
  const parts = places.flatMap((place) => place.parts)
  // A restore that got half way left the rest as it was expected.
  const half =
    change.kind === 'restore' &&
    own === change.to &&
    parts.some((part) => part.own === change.expect)
  // An empty identity says as little as none.
  const { identity: asked = '' } = change
  const meant = asked === '' ? first.identity : asked
  const another = places.find(({ identity }) => identity !== meant)
  if (another !== undefined && asked === '' && change.kind !== 'add') {
    const words = `${formatRef(change.ref)} is another member at ${another.device.host}: ${another.identity}, expected ${first.identity}; nothing was sent`
    return refusal('CONFLICT', words, { provider: PROVIDER, ref: change.ref }, false)
  }
  const { address, port } = first
  return {
    target,
    places,
    identity: another?.identity ?? first.identity,
    own: half ? change.expect : own,
    says: wordsOf(parts.find((part) => part.own === own)?.native),
    object: first.parts[0].path,
    ...(own === 'unknown' ? { doubt: 'an operator has to set it to a known one' } : {}),
    ...(address === undefined ? {} : { address }),
    ...(port === undefined ? {} : { port }),
  }
}
