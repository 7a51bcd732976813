import type { CallContext, Change, ChangeResult } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { formatRef } from '../../../provider/member-ref.js'
import { toAdmin, toWords } from '../codec/members.js'
import { terminate } from './connections.js'
import { add, remove } from './membership.js'
import { findPlaces, Lists, type Place, type Site } from './places.js'
import { putBack } from './put-back.js'
import { isAtLeast, lowest } from '../read/reading.js'
import { PROVIDER } from '../session/session.js'
import { toTarget } from '../read/target.js'
import { writeAll, type Write, type Written } from './writes.js'

/** What one change comes to: a result at once, or writes whose outcomes make it. */
type Plan =
  | {
      readonly change: Change
      readonly result: ChangeResult
      /** What to tell whoever asks why. */
      readonly note?: string
    }
  | {
      readonly change: Change
      readonly writes: readonly Write[]
      readonly places: readonly Place[]
    }

/** A change whose writes are under way. */
interface Open {
  readonly index: number
  readonly change: Change
  readonly writes: readonly Write[]
  readonly places: readonly Place[]
  readonly outcomes: Map<Write, Written>
}

/** What became of all changes. */
export interface Applied {
  readonly results: readonly ChangeResult[]
  /** Whether the configuration of a unit was changed, be it put back again. */
  readonly touched: boolean
  /** What to tell whoever asks why, by the place of the change. */
  readonly notes: ReadonlyMap<number, string>
}

/** Carries out changes, in order where order matters, and says of each what became of it. */
export async function applyAll(
  site: Site,
  changes: readonly Change[],
  ctx: CallContext,
): Promise<Applied> {
  const lists = new Lists(site, changes)
  const results: ChangeResult[] = []
  const notes = new Map<number, string>()
  let touched = false
  const end = (index: number, result: ChangeResult): void => {
    if (result.status === 'applied') touched = true
    results[index] = result
    ctx.result?.(index, result)
  }
  const open: Open[] = []
  for (const [index, change] of changes.entries()) {
    const made = await settle(change, ctx, () => plan(site, lists, change, ctx))
    if ('result' in made) {
      if (made.note !== undefined) notes.set(index, made.note)
      end(index, made.result)
    } else open.push({ index, ...made, outcomes: new Map() })
  }
  const owners = new Map(open.flatMap((one) => one.writes.map((write) => [write, one] as const)))
  for await (const [write, written] of writeAll([...owners.keys()], ctx)) {
    const one = owners.get(write)
    if (one === undefined) continue
    one.outcomes.set(write, written)
    if (one.outcomes.size < one.writes.length) continue
    const result = await toResult(one, ctx)
    // Put back: the device counts that as two changes
    if (result.status === 'rejected' && isPartial(one)) touched = true
    end(one.index, result)
  }
  return { results, touched, notes }
}

/** A refusal or a failure of one change stays with it; an abort ends the call. */
async function settle(change: Change, ctx: CallContext, make: () => Promise<Plan>): Promise<Plan> {
  try {
    return await make()
  } catch (error) {
    if (ctx.signal.aborted || !isDrainableError(error)) throw error
    // What can succeed later may have been carried out, or may still be
    const status = error.retryable ? 'unknown' : 'rejected'
    return { change, result: { ref: change.ref, status, error } }
  }
}

async function plan(site: Site, lists: Lists, change: Change, ctx: CallContext): Promise<Plan> {
  const target = toTarget(change.ref, site.resolver.partition)
  if (change.kind === 'add') return { change, result: await add(site, target, change, ctx) }
  const places = await findPlaces(site, lists, target, ctx)
  const [first] = places
  if (first === undefined) {
    return refuse(change, 'NOT_FOUND', `${formatRef(change.ref)} is not there`)
  }
  const { identity = first.identity } = change
  const another = places.find((place) => place.identity !== identity)
  if (another !== undefined) {
    return refuse(
      change,
      'CONFLICT',
      `${formatRef(change.ref)} is another one now at ${another.device.host}: ${another.identity}, expected ${identity}`,
    )
  }
  switch (change.kind) {
    case 'hold':
      return hold(change, places)
    case 'restore':
      return restore(change, places)
    case 'terminate':
      return { change, ...(await terminate(change, places, ctx)) }
    case 'remove':
      return { change, result: await remove(change, target, places, lists, ctx) }
    default:
      return change satisfies never
  }
}

function hold(change: Extract<Change, { kind: 'hold' }>, places: readonly Place[]): Plan {
  const { ref, to } = change
  const own = lowest(places.map((place) => place.own))
  if (own === 'unknown') {
    return refuse(
      change,
      'CONFLICT',
      `${formatRef(ref)} is in a state that is not known, it is not written over`,
    )
  }
  const writes = places.flatMap(({ device, parts, pool }) =>
    parts
      .filter((part) => !isAtLeast(part.own, to))
      .map((part) => ({ device, path: part.path, words: toWords(to), pool })),
  )
  if (writes.length === 0) return { change, result: { ref, status: 'unchanged' } }
  return { change, writes, places }
}

function restore(change: Extract<Change, { kind: 'restore' }>, places: readonly Place[]): Plan {
  const { ref, expect, to, native } = change
  const own = lowest(places.map((place) => place.own))
  // A restore that got half way left the rest as it was expected
  const half = own === to && places.some(({ parts }) => parts.some((part) => part.own === expect))
  if (own === to && (!half || to === expect)) {
    return { change, result: { ref, status: 'unchanged' } }
  }
  if (own !== expect && !half) {
    return refuse(
      change,
      'CONFLICT',
      `${formatRef(ref)} is ${own}, expected ${expect}: somebody changed it`,
    )
  }
  const writes = places.flatMap(({ device, parts, pool }) =>
    parts
      .filter((part) => (half ? part.own === expect : part.own !== to))
      .map((part) => ({ device, path: part.path, words: toWords(to, native), pool })),
  )
  return { change, writes, places }
}

function refuse(change: Change, code: 'NOT_FOUND' | 'CONFLICT', message: string): Plan {
  const { ref } = change
  const error = new DrainableError(code, message, { provider: PROVIDER, ref, retryable: false })
  return { change, result: { ref, status: 'rejected', error } }
}

function failureOf({ outcomes }: Open): Exclude<Written, { status: 'applied' }> | undefined {
  const failed = [...outcomes.values()].flatMap((one) => (one.status === 'applied' ? [] : [one]))
  return failed.find(({ status }) => status === 'unknown') ?? failed[0]
}

/** Whether some of its writes were done, and others refused. */
function isPartial(one: Open): boolean {
  const done = [...one.outcomes.values()].some(({ status }) => status === 'applied')
  return done && failureOf(one)?.status === 'rejected'
}

/**
 * All writes done is done; else the worst of them tells. What was done of a change that is refused
 * in part is put back: a refusal says that nothing was changed.
 */
async function toResult(one: Open, ctx: CallContext): Promise<ChangeResult> {
  const { ref } = one.change
  const failed = failureOf(one)
  if (failed === undefined) return { ref, status: 'applied' }
  if (!isPartial(one)) return { ref, ...failed }
  const left: string[] = []
  for (const place of one.places) {
    const done = one.writes.find(
      (write) => write.device === place.device && one.outcomes.get(write)?.status === 'applied',
    )
    if (done === undefined) continue
    const { session, state } = done.words
    const why = await putBack(place, toAdmin(session, state), ctx)
    if (why !== undefined) left.push(`${place.device.host} (${why})`)
  }
  if (left.length === 0) return { ref, ...failed }
  const { code, message, retryable } = failed.error
  const error = new DrainableError(
    code,
    `${message}; what was done before could not be put back at ${left.join(', ')}`,
    { provider: PROVIDER, ref, retryable, cause: failed.error },
  )
  return { ref, status: 'unknown', error }
}
