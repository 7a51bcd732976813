import type {
  AdminState,
  Capabilities,
  Change,
  ChangeResult,
  LoadScope,
  MemberRef,
  PoolReading,
  PresentReading,
  ProviderInfo,
  Reading,
  Snapshot,
} from '../../../provider/contract.js'
import { CAPABILITY_WORDS } from '../../../provider/capability-words.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { formatRef, refKey } from '../../../provider/member-ref.js'
import { printable, quote } from '../../../provider/quote.js'
import { printableName, printableAbsent, printableReading, printableScope } from './gate-words.js'
import { keepIndex } from './look.js'

/**
 * Checks everything that comes from a provider. What passes meets the contract: a count is a finite integer from 0, a
 * state is a known one. A scope with anything else is unread, and its note says what was found; only `=== 0` counts
 * as zero.
 *
 * @param at - when the snapshot was received
 * @param counts - what the provider counts, if known already
 */
export function checkSnapshot(
  snapshot: Snapshot,
  provider: string,
  at: number,
  counts?: Counts,
): Snapshot {
  const { readings } = whole(snapshot, provider)
  const index = new Map<string, Reading>()
  const known = { at, counts }
  const checked = readings.map((reading) => {
    const safe = checkReading(reading, provider, known)
    const key = refKey(safe.ref)
    if (index.has(key)) throw malformed(provider, `it listed ${formatRef(safe.ref)} twice`)
    index.set(key, safe)
    return safe
  })
  const safe = safeSnapshot(snapshot, checked)
  keepIndex(safe, index)
  return safe
}

/** Returns the same snapshot if nothing in it is wrong. */
function safeSnapshot(snapshot: Snapshot, checked: readonly Reading[]): Snapshot {
  const { readings, pools, ended } = snapshot
  const unchanged = checked.every((reading, i) => reading === readings[i])
  const counted = pools.filter(isPool)
  const gone = Array.isArray(ended) ? endedNames(ended) : ended
  if (unchanged && counted.length === pools.length && gone === ended) return snapshot
  return { readings: checked, pools: counted, ...(gone === undefined ? {} : { ended: gone }) }
}

/** The names of ended processes, printable like their scopes' names, see {@link printableName}. */
function endedNames(given: readonly unknown[]): readonly string[] {
  const names = given.filter((name) => typeof name === 'string')
  const safe = names.map(printableName)
  const same = names.length === given.length && safe.every((name, i) => name === names[i])
  return same ? (given as readonly string[]) : safe
}

/** A provider's value before it is checked. */
type Loose<T> = Partial<Record<keyof T, unknown>>

function loose<T>(value: T): Loose<T> {
  return typeof value === 'object' && value !== null ? value : {}
}

function whole(snapshot: Snapshot, provider: string): Snapshot {
  const { readings, pools, ended } = loose(snapshot)
  if (!Array.isArray(readings) || !Array.isArray(pools))
    throw malformed(provider, 'observe() gave no lists of readings and pools')
  if (ended !== undefined && ended !== 'unlisted' && !Array.isArray(ended))
    throw malformed(provider, "'ended' is neither a list nor 'unlisted'")
  return snapshot
}

function malformed(provider: string, what: string): DrainableError {
  return new DrainableError('MALFORMED_REPLY', `${provider}: ${what}`, { provider })
}

/** A pool without a count is left out: the floor then reports it as not known. */
function isPool(pool: PoolReading): boolean {
  return isCount(pool.serving) && isCount(pool.total)
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

const STATES: readonly unknown[] = ['ready', 'drain', 'maint']
const HEALTHS: readonly unknown[] = ['up', 'down', 'unchecked', 'unknown']

type Counts = Capabilities['counts']

/** The context for the check of a scope. */
interface Known {
  readonly at: number
  readonly counts: Counts | undefined
}

function checkReading(reading: Reading, provider: string, known: Known): Reading {
  const { ref, present, scopes } = loose(reading)
  const { pool, member } = loose(ref as MemberRef)
  if (typeof pool !== 'string' || typeof member !== 'string')
    throw malformed(provider, 'it listed a reading without a member')
  // The name is made only for an error: most looks have thousands of readings and none.
  const name = (): string => formatRef(reading.ref)
  if (typeof present !== 'boolean')
    throw malformed(provider, `it did not say whether ${name()} is there`)
  if (!Array.isArray(scopes)) throw malformed(provider, `${name()} has no list of processes`)
  // "No scope" must not look like "no work".
  if (present && scopes.length === 0)
    throw malformed(provider, `it listed ${name()} without any process that can hold its work`)
  const safe = checkScopes(reading.scopes, known)
  if (!reading.present)
    return printableAbsent(safe === scopes ? reading : { ...reading, scopes: safe })
  return printableReading(checkPresent(reading, safe, provider))
}

// eslint-disable-next-line complexity -- one check a field
function checkPresent(
  reading: PresentReading,
  scopes: readonly LoadScope[],
  provider: string,
): PresentReading {
  const { own, inherited, stored, health, serves, identity, maint } = reading
  const hints: unknown = reading.hints
  const hinted =
    hints === undefined || (Array.isArray(hints) && hints.every((hint) => typeof hint === 'string'))
  if (typeof identity !== 'string')
    throw malformed(provider, `${formatRef(reading.ref)} has no identity`)
  const fits =
    hinted &&
    (STATES.includes(own) || own === 'unknown') &&
    HEALTHS.includes(health) &&
    typeof serves === 'boolean' &&
    (maint === undefined || MAINT.includes(maint)) &&
    (stored === undefined || HOLDS.includes(stored)) &&
    (inherited === undefined || STATES.includes(inherited))
  if (fits) return scopes === reading.scopes ? reading : { ...reading, scopes }
  const said = STATES.includes(own) || own === 'unknown' ? [] : [`it says own: ${show(own)}`]
  const safe: { -readonly [K in keyof PresentReading]: PresentReading[K] } = {
    ...reading,
    own: STATES.includes(own) ? own : 'unknown',
    health: HEALTHS.includes(health) ? health : 'unknown',
    serves: (serves as unknown) === true,
    hints: [...said, ...(hinted ? (reading.hints ?? []) : [])],
    scopes,
  }
  if (!STATES.includes(inherited)) delete safe.inherited
  if (!HOLDS.includes(stored)) delete safe.stored
  if (maint !== undefined && !MAINT.includes(maint)) safe.maint = 'unknown'
  return safe
}

const HOLDS: readonly unknown[] = ['drain', 'maint']
const MAINT: readonly unknown[] = CAPABILITY_WORDS.maint

/** Returns the same list if nothing is wrong with it. */
function checkScopes(scopes: readonly LoadScope[], known: Known): readonly LoadScope[] {
  const [first] = scopes
  if (first !== undefined && scopes.length === 1) {
    const safe = checkScope(first, known)
    return safe === first ? scopes : [safe]
  }
  const byName = new Map<string, LoadScope>()
  let wrong = false
  for (const scope of scopes) {
    const safe = checkScope(scope, known)
    const twice = byName.has(safe.scope)
    wrong ||= twice || safe !== scope
    // If a name is listed twice, one entry stays, unread.
    byName.set(safe.scope, twice ? unread(scope, 'it is listed twice', known.at) : safe)
  }
  return wrong ? [...byName.values()] : scopes
}

function checkScope(scope: LoadScope, { at, counts }: Known): LoadScope {
  const problem = problemOf(scope, at) ?? (counts === 'none' ? uncounted(scope) : undefined)
  if (problem !== undefined) return { ...unread(scope, problem, at), ...takenOf(scope) }
  const { state } = scope
  // The numbers of an unread scope mean nothing.
  if (state !== 'read' && problemOf({ ...scope, state: 'read' }, at) !== undefined)
    return printableScope({
      ...unread(scope, '', at),
      state,
      ...(state === 'ended' ? {} : noteOf(scope)),
    })
  return printableScope(tidy(scope))
}

/** The optional fields of a scope, and their types. */
const BESIDES = [
  ['pooled', Number.isFinite],
  ['oldest', isAge],
  ['released', isBoolean],
  ['old', isBoolean],
  ['note', isText],
  ['countersFrom', isText],
] as const

/** Removes invalid optional fields: nothing depends on them, and a ticket could not store them. */
function tidy(scope: LoadScope): LoadScope {
  const given = loose(scope)
  const isWrong = ([field, fits]: (typeof BESIDES)[number]): boolean =>
    given[field] !== undefined &&
    (!fits(given[field]) || (field === 'oldest' && scope.active === 0))
  if (!BESIDES.some(isWrong)) return scope
  const wrong = BESIDES.filter(isWrong)
  const kept = Object.entries(scope).filter(([field]) => !wrong.some(([one]) => one === field))
  return Object.fromEntries(kept) as unknown as LoadScope
}

function isAge(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value <= LONGEST
}

function isBoolean(value: unknown): boolean {
  return typeof value === 'boolean'
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function noteOf(scope: LoadScope): { readonly note?: string } {
  const { note } = loose(scope)
  return typeof note === 'string' ? { note } : {}
}

/**
 * The longest duration from a provider, in milliseconds: ten years, as in a policy. A ticket's dates can't represent
 * more.
 */
const LONGEST = 10 * 365 * 24 * 3_600_000

// eslint-disable-next-line complexity -- one check a field
function problemOf(given: LoadScope, at: number): string | undefined {
  const scope = loose(given)
  const said = (field: keyof LoadScope): string => `it says ${field}: ${show(scope[field])}`
  if (typeof scope.scope !== 'string') return said('scope')
  const { state, arrivals, sampledAt, inForce, admin, open, lived, mayHide } = scope
  if (state === 'unread' || state === 'ended') return undefined
  if (state !== 'read') return said('state')
  if (typeof scope.incarnation !== 'string') return said('incarnation')
  if (!isCount(scope.active)) return said('active')
  if (!isCount(scope.queued)) return said('queued')
  if (arrivals !== undefined && !isCount(arrivals)) return said('arrivals')
  if (typeof sampledAt !== 'number' || !(sampledAt <= at && sampledAt >= at - LONGEST))
    return said('sampledAt')
  if (inForce !== undefined && typeof inForce !== 'boolean') return said('inForce')
  if (admin !== undefined && admin !== 'unknown' && !STATES.includes(admin)) return said('admin')
  if (open !== undefined && typeof open !== 'boolean') return said('open')
  if (mayHide !== undefined && typeof mayHide !== 'boolean') return said('mayHide')
  if (lived !== undefined && !(typeof lived === 'number' && lived >= 0 && lived < Infinity))
    return said('lived')
  return undefined
}

/** Refuses a scope that is released and has work: for a product that counts nothing, this contradicts itself. */
function uncounted({ state, released, active, queued }: LoadScope): string | undefined {
  if (state !== 'read' || released !== true || active + queued === 0) return undefined
  return `it says released, and ${active} active and ${queued} queued, in one reading`
}

/** What a process has taken that was read, whatever is wrong with its numbers: see {@link LoadScope.inForce}. */
function takenOf(given: LoadScope): Pick<LoadScope, 'inForce' | 'admin'> {
  const { state, inForce = true, admin } = loose(given)
  if (state !== 'read') return {}
  if (admin === undefined) return { inForce: inForce === true }
  const known = STATES.includes(admin)
  return { inForce: known && inForce === true, ...(known ? { admin: admin as AdminState } : {}) }
}

/** Describes any value in a few words; a text from outside is cut and quoted. */
function show(value: unknown): string {
  if (typeof value === 'string') return `"${quote(value, 40)}"`
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

function unread(scope: LoadScope, problem: string, at: number): LoadScope {
  const { scope: name, incarnation } = loose(scope)
  return {
    scope: printableName(typeof name === 'string' ? name : ''),
    incarnation: typeof incarnation === 'string' ? printable(incarnation) : '',
    state: 'unread',
    sampledAt: at,
    active: 0,
    queued: 0,
    ...(problem === '' ? {} : { note: problem }),
  }
}

/** The adapter itself answered what the contract does not allow. */
function broken(provider: string, what: string): DrainableError {
  return new DrainableError('PROVIDER_FAILED', `${provider}: ${what}`, { provider })
}

/** Checks a result of a call: an invalid result, or one about another member, becomes unknown. */
export function checkResult(
  change: Change,
  result: ChangeResult | undefined,
  provider: string,
): ChangeResult {
  const { ref } = change
  const status: unknown = (result as Partial<ChangeResult> | undefined)?.status
  if (result === undefined || typeof result !== 'object')
    return { ref, status: 'unknown', error: broken(provider, 'a change has no result') }
  // Results out of order could end or undo the wrong member.
  if (!isOf(ref, result)) {
    const words = `the result of '${change.kind}' for ${formatRef(ref)} is about another member`
    return { ref, status: 'unknown', error: broken(provider, words) }
  }
  if (status === 'applied' || status === 'unchanged') {
    const { terminated } = result as { terminated?: unknown }
    if (terminated === undefined || isCount(terminated)) return result
    return { ref, status }
  }
  const { error } = result as { error?: unknown }
  if ((status === 'rejected' || status === 'unknown') && isDrainableError(error)) return result
  const words = `the result of '${change.kind}' is ${show(status)}`
  const cause = isDrainableError(error) ? error : broken(provider, words)
  return { ref, status: 'unknown', error: cause }
}

function isOf(ref: MemberRef, result: ChangeResult): boolean {
  const { pool, member, balancer } = loose(loose(result).ref as MemberRef)
  return pool === ref.pool && member === ref.member && balancer === ref.balancer
}

/** Checks the members that a provider found, and removes duplicates; throws if it is not a list of members. */
export function checkRefs(found: unknown, provider: string): readonly MemberRef[] {
  if (!Array.isArray(found)) throw malformed(provider, 'find() gave no list of members')
  const refs = (found as readonly MemberRef[]).map((ref) => {
    const { pool, member, balancer } = loose(ref)
    const named = balancer === undefined || typeof balancer === 'string'
    if (typeof pool === 'string' && typeof member === 'string' && named) return ref
    throw malformed(provider, 'find() listed something that is not a member')
  })
  return [...new Map(refs.map((ref) => [refKey(ref), ref])).values()]
}

const NUMBERS = ['freshness', 'blind', 'lateBound', 'minTimeout', 'minInterval'] as const

/** Checks the answer of `describe()`. */
export function checkInfo(info: ProviderInfo, provider: string): ProviderInfo {
  const fail = (what: string): never => {
    throw broken(provider, `describe() gave ${what}`)
  }
  const choose = (field: string, value: unknown, words: readonly unknown[]): void => {
    if (!words.includes(value))
      fail(`${field}: ${show(value)}, expected one of ${words.map(show).join(', ')}`)
  }
  const given = loose(info).capabilities
  if (typeof given !== 'object' || given === null) return fail('no capabilities')
  const capabilities = loose(given as Capabilities)
  const { ladder } = capabilities
  if (!Array.isArray(ladder)) return fail('no ladder of admin states')
  for (const state of ladder) choose('ladder', state, STATES)
  choose('maint', capabilities.maint, MAINT)
  choose('counts', capabilities.counts, CAPABILITY_WORDS.counts)
  choose('removal', capabilities.removal ?? 'unknown', CAPABILITY_WORDS.removal)
  for (const field of NUMBERS) {
    const value = capabilities[field]
    const optional = field === 'minTimeout' || field === 'minInterval'
    if (value === undefined && optional) continue
    if (typeof value !== 'number' || !(value >= 0 && value <= LONGEST))
      return fail(`${field}: ${show(value)}`)
  }
  return info
}
