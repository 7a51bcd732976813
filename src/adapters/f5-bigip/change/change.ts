import type {
  Begun,
  CarefulAdapter,
  ChangeOf,
  ChangeOutcome,
  Later,
  Sight,
} from '../../../kit/change.js'
import { caught, leftBehind, refusal } from '../../../kit/errors.js'
import type { AdminState, CallContext, Change } from '../../../provider/contract.js'
import { isDrainableError, type DrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { quote } from '../../../provider/quote.js'
import { isObject } from '../../../kit/json.js'
import type { Settings } from '../options.js'
import type { Hints } from '../read/hints.js'
import { isAtLeast, lowest } from '../read/reading.js'
import { toTarget, type Resolver, type Target } from '../read/target.js'
import type { Device } from '../session/device.js'
import { PROVIDER } from '../session/session.js'
import { terminate } from './connections.js'
import { Half } from './half.js'
import { add, remove } from './membership.js'
import { forgetRecords } from './persistence.js'
import { endpointsOf, findPlaces, readLists, type Lists, type Place, type Site } from './places.js'
import { writeAll, type Written } from './writes.js'

/** A member or node on every active unit, as the rules of a change see it. */
export interface Found extends Sight {
  readonly target: Target
  readonly places: readonly Place[]
  /** The same on units that passed traffic before, where it is open on those that do now. */
  readonly passed?: readonly Place[]
  /** Why it can't be told which one is meant. */
  readonly refused?: DrainableError
}

export interface WorkOptions {
  readonly settings: Settings
  readonly resolver: Resolver
  readonly hints: Hints
  /** The units that passed traffic before, beside the active ones. */
  readonly others: (active: readonly Device[]) => readonly Device[]
  /** Asked once, before anything is looked at: the units that pass traffic. */
  readonly before: () => Promise<readonly Device[]>
}

/** What BIG-IP is sent for the changes of one call. */
export class Work implements CarefulAdapter<Found, Half> {
  readonly provider = PROVIDER
  /** The units that the changes go to. */
  devices: readonly Device[] = []
  /** Whether the configuration of a unit was changed, be it put back again. */
  touched = false
  readonly #options: WorkOptions
  #site: Site | undefined
  #lists: Lists | undefined

  constructor(options: WorkOptions) {
    this.#options = options
  }

  absent({ ref }: Change): string {
    return `${formatRef(ref)} is not there`
  }

  async look(
    changes: readonly Change[],
    ctx: CallContext,
  ): Promise<(change: Change) => Found | undefined> {
    const { resolver, before } = this.#options
    // The role is read once a call: it does not change with each write.
    if (this.#site === undefined) {
      this.devices = await before()
      this.#site = { devices: this.devices, resolver }
    }
    const lists = (this.#lists = await readLists(this.#site, changes, ctx))
    const found = new Map<Change, Found | undefined>()
    for (const change of changes) found.set(change, await this.#find(change, lists, ctx))
    return (change) => found.get(change)
  }

  async #find(change: Change, lists: Lists, ctx: CallContext): Promise<Found | undefined> {
    const site = this.#known()
    const target = toTarget(change.ref, site.resolver.partition)
    try {
      const places = await findPlaces(site, lists, target, ctx)
      // A unit that lacks it is sent the addition, and the others say that they have it.
      if (change.kind === 'add' && places.length < site.devices.length) return undefined
      const found = toFound(change, target, places)
      if (found?.own !== 'ready') return found
      return { ...found, passed: await this.#passed(change, target, ctx) }
    } catch (error) {
      if (!isDrainableError(error, 'INVALID_OPTIONS')) throw error
      return { target, places: [], refused: error, ...asExpected(change) }
    }
  }

  /** What an undo is to reach beside the active units; one that can't be asked now is left. */
  async #passed(change: Change, target: Target, ctx: CallContext): Promise<readonly Place[]> {
    const { devices, resolver } = this.#known()
    if (change.kind !== 'restore' || change.to !== 'ready') return []
    const places: Place[] = []
    for (const device of this.#options.others(devices)) {
      const site = { devices: [device], resolver }
      const find = async (): Promise<readonly Place[]> =>
        findPlaces(site, await readLists(site, [change], ctx), target, ctx)
      places.push(...(await caught(ctx, find, () => [])))
    }
    return places.filter(({ own }) => own === 'drain' || own === 'maint')
  }

  /** Ready on the active units is not all that was asked for where another one would take it out again. */
  readonly isSo = (change: Change, { passed = [] }: Found, same: boolean): boolean =>
    same && !(change.kind === 'restore' && passed.length > 0)

  async hold(change: ChangeOf<'hold'>, found: Found, ctx: CallContext): Promise<Later<Half>> {
    const places = placesOf(change, found)
    const { settings } = this.#options
    if (change.to === 'maint' && settings.persistence === 'forget')
      await this.#forget(change, places, ctx)
    const needed = (own: Place['own']): boolean => !isAtLeast(own, change.to)
    return begin(new Half(places, change.to, undefined, needed))
  }

  restore(change: ChangeOf<'restore'>, found: Found): Later<Half> {
    const { to, native, expect } = change
    const places = placesOf(change, found)
    // What an earlier one got done is left as it is.
    const half = expect !== to && lowest(places.map(({ own }) => own)) === to
    const needed = (own: Place['own']): boolean => (half ? own === expect : own !== to)
    return begin(new Half([...places, ...(found.passed ?? [])], to, native, needed))
  }

  // The rules take these three off the object: they carry it along.
  readonly terminate = (
    change: ChangeOf<'terminate'>,
    found: Found,
    ctx: CallContext,
  ): Promise<ChangeOutcome> => this.#terminate(change, found, ctx)

  readonly remove = async (
    change: ChangeOf<'remove'>,
    found: Found,
    ctx: CallContext,
  ): Promise<ChangeOutcome> =>
    this.#note(await remove(change, found.target, placesOf(change, found), ctx))

  readonly add = async (
    change: ChangeOf<'add'>,
    _found: undefined,
    ctx: CallContext,
  ): Promise<ChangeOutcome> => {
    const target = toTarget(change.ref, this.#options.resolver.partition)
    return this.#note(await add(this.#known(), target, change, ctx))
  }

  /** Templates and plain members first; what a template made only where reading back shows that it is needed. */
  async *finish(
    begun: readonly Begun<Found, Half>[],
    ctx: CallContext,
  ): AsyncGenerator<readonly [Begun<Found, Half>, ChangeOutcome]> {
    yield* this.#send(begun, ({ later }) => later.heads(), ctx)
    const more = begun.filter(({ later }) => later.hasCopies && later.failure() === undefined)
    for (const { later } of more) await later.readCopies(ctx)
    yield* this.#send(more, ({ later }) => later.copies(), ctx)
  }

  async *#send(
    begun: readonly Begun<Found, Half>[],
    of: (one: Begun<Found, Half>) => ReturnType<Half['heads']>,
    ctx: CallContext,
  ): AsyncGenerator<readonly [Begun<Found, Half>, ChangeOutcome]> {
    const owners = new Map(begun.flatMap((one) => of(one).map((write) => [write, one] as const)))
    const ended = new Set<Begun<Found, Half>>()
    const end = async (one: Begun<Found, Half>) => {
      ended.add(one)
      return [one, await this.#outcome(one, ctx)] as const
    }
    for await (const [write, written] of writeAll([...owners.keys()], ctx)) {
      const one = owners.get(write)
      if (one === undefined) continue
      one.later.note(write, written)
      if (written.status === 'applied') this.touched = true
      if (one.later.isOver) yield await end(one)
    }
    // Nothing had to be sent for these.
    for (const one of begun) if (one.later.isOver && !ended.has(one)) yield await end(one)
  }

  /** All writes done is done; else the worst of them tells. What was done of a change that is refused in part is put back. */
  async #outcome({ change, later }: Begun<Found, Half>, ctx: CallContext): Promise<ChangeOutcome> {
    const { ref } = change
    const failed: Exclude<Written, { status: 'applied' }> | undefined = later.failure()
    if (failed === undefined) {
      if (change.kind === 'restore') this.#options.hints.forget(ref)
      return { status: 'applied' }
    }
    if (!later.isPartial) return failed
    const left = await later.putBack(ctx)
    if (left.length === 0) return failed
    const words = `what was done before could not be put back at ${left.join(', ')}`
    return { status: 'unknown', error: leftBehind(failed.error, words) }
  }

  async #terminate(
    change: ChangeOf<'terminate'>,
    found: Found,
    ctx: CallContext,
  ): Promise<ChangeOutcome> {
    const { settings, hints } = this.#options
    const site = this.#known()
    const lists = this.#lists ?? (await readLists(site, [change], ctx))
    const places = placesOf(change, found)
    const cuts = await Promise.all(
      places.map(async ({ device }) => ({
        device,
        target: found.target,
        endpoints: await endpointsOf(site, lists, device, found.target, ctx),
      })),
    )
    const forget = async (): Promise<void> => {
      if (settings.persistence === 'forget') await this.#forget(change, places, ctx)
    }
    const { outcome, note } = await terminate(cuts, settings.freshness, forget, ctx)
    if (outcome.status === 'applied') {
      const cut =
        'connections were cut by address and port: those that came through other pools too'
      hints.note(change.ref, 'cut', note === undefined ? cut : `${cut}; ${note}`)
    }
    return outcome
  }

  async #forget({ ref }: Change, places: readonly Place[], ctx: CallContext): Promise<void> {
    const said = await Promise.all(places.map((place) => forgetRecords(place, ctx)))
    this.#options.hints.note(ref, 'persistence', said.join('; '))
  }

  #note(outcome: ChangeOutcome): ChangeOutcome {
    if (outcome.status === 'applied') this.touched = true
    return outcome
  }

  #known(): Site {
    if (this.#site === undefined) throw new TypeError('nothing was looked at')
    return this.#site
  }
}

function begin(later: Half): Later<Half> {
  return { later, sent: () => later.isSent }
}

function toFound(change: Change, target: Target, places: readonly Place[]): Found | undefined {
  const [first] = places
  if (first === undefined) return undefined
  const own = lowest(places.map((place) => place.own))
  const parts = places.flatMap((place) => place.parts)
  // A restore that got half way left the rest as it was expected.
  const half =
    change.kind === 'restore' &&
    own === change.to &&
    parts.some((part) => part.own === change.expect)
  const another = places.find(({ identity }) => identity !== (change.identity ?? first.identity))
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

function wordsOf(native: unknown): string {
  const { session, state } = isObject(native) ? native : {}
  const word = (value: unknown): string => (typeof value === 'string' ? quote(value, 40) : 'none')
  return `session ${word(session)}, state ${word(state)}`
}

/** As a change that is refused for its name is to get past the judgement of states. */
function asExpected(change: Change): { readonly identity: string; readonly own: AdminState } {
  const own = change.kind === 'restore' ? change.expect : 'ready'
  return { identity: change.identity ?? '', own }
}

/** @throws the refusal of a name that means several, `CONFLICT` where the units mean different ones */
function placesOf({ ref, identity }: Change, { places, refused }: Found): readonly Place[] {
  if (refused !== undefined) throw refused
  const [first] = places
  const expected = identity ?? first?.identity
  const another = places.find((place) => place.identity !== expected)
  if (another === undefined) return places
  const words = `${formatRef(ref)} is another member at ${another.device.host}: ${another.identity}, expected ${expected ?? ''}; nothing was sent`
  throw refusal('CONFLICT', words, { provider: PROVIDER, ref }, false)
}
