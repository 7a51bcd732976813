import type {
  AdminState,
  LoadScope,
  MemberRef,
  PresentReading,
} from '../../../provider/contract.js'
import { quote } from '../../../provider/quote.js'
import type { Entry } from '../codec/rows.js'
import type { Standing } from '../session/standing.js'
import type { Memory, OwnDisable } from './memory.js'
import type { Found } from './pool.js'

/** What was read of a member, and what we did to it: both tell its own state. */
export interface Recalled extends Found {
  readonly ours: OwnDisable | undefined
  readonly state: Own
}

/** The member's own state, and what it inherits. */
export interface Own {
  readonly own: AdminState | 'unknown'
  readonly inherited?: 'drain' | 'maint'
}

/**
 * Which state is the member's own. The appliance has one state for both questions:
 *
 * | svrstate | our disable | own |
 * |---|---|---|
 * | UP, DOWN, UNKNOWN, BUSY | - | ready |
 * | GOING OUT OF SERVICE | any | drain |
 * | GOING OUT OF SERVICE | none, and a monitor or a parent did it | ready, inherits drain |
 * | GOING OUT OF SERVICE | none | drain |
 * | OUT OF SERVICE | drain or maint | that |
 * | OUT OF SERVICE | none, and a parent did it | ready, inherits maint |
 * | OUT OF SERVICE | none, and it says graceful | drain |
 * | OUT OF SERVICE | none | maint |
 * | DOWN and DISABLED at once | drain or maint | that |
 * | anything else | - | unknown |
 *
 * A parent is the server object, or the group as a whole.
 */
export function ownState(entry: Entry, ours: OwnDisable | undefined, parentDisabled: boolean): Own {
  if (entry.phase === 'unknown') {
    return { own: entry.shut && ours !== undefined ? ours.as : 'unknown' }
  }
  if (entry.phase === 'in') return { own: 'ready' }
  const inherited = entry.phase === 'trofs' ? 'drain' : 'maint'
  const parent = parentDisabled ? ({ inherited } as const) : {}
  if (ours !== undefined && (ours.sent || !parentDisabled || ours.as === 'maint')) {
    return { own: entry.phase === 'trofs' ? 'drain' : ours.as, ...parent }
  }
  if (entry.byMonitor || parentDisabled) return { own: 'ready', inherited }
  if (entry.phase === 'trofs' || entry.graceful === true) return { own: 'drain' }
  return { own: 'maint' }
}

/** @param stamp - taken before the reading was asked for */
export function recalled(
  found: Found,
  memory: Memory,
  stamp: number,
  { incarnation }: Standing,
): Recalled {
  const { entry, traits, serverDisabled } = found
  const ours = memory.recall(entry, stamp, incarnation)
  return { ...found, ours, state: ownState(entry, ours, serverDisabled || traits.disabled) }
}

/**
 * Whether the appliance itself says that nothing is left: OUT OF SERVICE, reached by itself, under a
 * graceful disable of ours with delay 0. Where downStateFlush is off, connections live on in OUT OF
 * SERVICE, and the word is worth nothing.
 */
export function isReleased({
  entry,
  traits,
  ours,
  serverDisabled,
}: Pick<Recalled, 'entry' | 'traits' | 'ours' | 'serverDisabled'>): boolean {
  const drained = ours?.graceful === true && ours.as === 'drain'
  const byItself = !serverDisabled && !traits.disabled
  return entry.phase === 'out' && drained && byItself && traits.flush === true
}

/**
 * One reading of one member.
 *
 * @param told - things to tell whoever asks why
 */
export function toReading(
  ref: MemberRef,
  member: Recalled,
  standing: Standing,
  told: readonly string[],
): PresentReading {
  const { entry, traits, state, vservers } = member
  const scope = toScope(member, standing)
  const unverified = whyUnverified(member, standing, scope)
  const hints = [...strangeHints(entry, state.own), ...trofsHints(member), ...told]
  return {
    ref,
    present: true,
    identity: entry.identity,
    ...(entry.address === undefined ? {} : { address: entry.address }),
    ...(entry.port === 0 ? {} : { port: entry.port }),
    ...(entry.weight === undefined ? {} : { weight: entry.weight }),
    ...state,
    serves: entry.phase === 'in' && entry.health === 'up',
    health: entry.phase === 'out' || !traits.monitored ? 'unchecked' : entry.health,
    scopes: [scope],
    maint: traits.flush === undefined ? 'unknown' : traits.flush ? 'cuts' : 'gentle',
    native: {
      svrstate: entry.svrstate,
      ...(traits.servicetype === '' ? {} : { servicetype: traits.servicetype }),
      ...(entry.graceful === undefined ? {} : { graceful: entry.graceful }),
      ...(vservers === undefined ? {} : { vservers }),
    },
    // No client gets in while it is out of service, with or without a persistence entry.
    ...(entry.phase === 'out' && state.own === 'drain' ? { sealed: true } : {}),
    ...(unverified === undefined ? {} : { unverified }),
    ...(hints.length === 0 ? {} : { hints }),
  }
}

function toScope(member: Recalled, standing: Standing): LoadScope {
  const { entry, counts, countedAt, seenAt } = member
  const { own } = member.state
  const base = { scope: standing.node, incarnation: standing.incarnation, sampledAt: countedAt }
  if (counts === undefined) {
    const note = 'stat has no row for it, or not the numbers it takes'
    // Its state was read, and only its numbers are missing.
    const inForce = own !== 'unknown'
    return { ...base, state: 'unread', active: 0, queued: 0, inForce, note }
  }
  // The numbers are repeated for some seconds: those that come with UP are from before the disable.
  const stale = entry.phase !== 'in' && counts.up
  const { active, queued, pooled, arrivals } = counts
  const released = isReleased(member) && !stale
  // The word of the appliance is as new as the state that it stands in.
  const confirmed =
    released && active + queued === 0 ? { sampledAt: Math.max(countedAt, seenAt) } : {}
  return {
    ...base,
    ...confirmed,
    state: 'read',
    ...(standing.boot === undefined ? {} : { countersFrom: standing.boot }),
    active,
    queued,
    pooled,
    ...(arrivals === undefined ? {} : { arrivals }),
    inForce: !stale && own !== 'unknown',
    ...(released ? { released: true } : awaitsOut(entry) ? { released: false } : {}),
    ...noteOf(member, stale),
  }
}

function noteOf({ entry, counts }: Recalled, stale: boolean): Pick<LoadScope, 'note'> {
  if (stale) return { note: 'its numbers are still those from before the disable' }
  return awaitsOut(entry) && counts?.arrivals === undefined ? { note: ENTRIES } : {}
}

function whyUnverified(
  { entry, counts }: Recalled,
  standing: Standing,
  scope: LoadScope,
): string | undefined {
  if (scope.released === true) return undefined
  if (standing.unverified !== undefined) return standing.unverified
  if (counts === undefined) return undefined
  if (awaitsOut(entry) && counts.arrivals === undefined) return ENTRIES
  if (counts.surplus === 0) return undefined
  return `${counts.surplus} established connections to it carry no counted transaction: upgraded ones (WebSocket) and, without multiplexing, idle ones look alike`
}

const ENTRIES = 'clients with an entry can come until OUT OF SERVICE'

/** In TROFS on its way out, not for as long as a monitor says so: it is OUT OF SERVICE once nobody can come. */
function awaitsOut({ phase, byMonitor }: Entry): boolean {
  return phase === 'trofs' && !byMonitor
}

/** What the appliance said of a state that is not known: the first thing that whoever asks why is told. */
function strangeHints({ svrstate, enabled }: Entry, own: Own['own']): readonly string[] {
  if (own !== 'unknown') return []
  const also = enabled === false ? ", state 'DISABLED'" : ''
  return [`svrstate '${quote(svrstate, 40)}'${also}`]
}

function trofsHints({ entry, counts }: Recalled): readonly string[] {
  if (entry.phase !== 'trofs') return []
  const hints: string[] = []
  if (entry.trofsReason !== undefined) hints.push(`in TROFS because: ${entry.trofsReason}`)
  const clients = counts?.clients ?? 0
  if (clients > 0) hints.push(`${clients} client connections`)
  hints.push(
    'in TROFS clients with a persistence entry are still let in, unless trofsPersistence is DISABLED on the virtual server; escalateAfter ends it',
  )
  return hints
}
