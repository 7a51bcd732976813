import type {
  AbsentReading,
  Health,
  LoadScope,
  MemberRef,
  PoolReading,
  PresentReading,
  Snapshot,
} from '../../../provider/contract.js'
import { hintsOfAgent, nameOfAgent } from '../../../kit/haproxy/agents.js'
import { hasPassed, trackedHealth } from '../../../kit/haproxy/checks.js'
import { takenAlong } from '../../../kit/haproxy/followers.js'
import { identityOf } from '../codec/state.js'
import type { Settings } from '../options.js'
import type { Process } from '../session/process.js'
import type { ControlPoint, ShownAll } from '../session/session.js'
import { keyOf } from './read.js'
import { type ShownProcess, type ShownServer, wouldServe } from './shown.js'
import { whyReused } from './off-row.js'

/** The scope of processes that are not known one by one, because the master could not be asked. */
const UNLISTED = 'old processes'
/** The scope of processes that were replaced before the first look and can't be seen. */
const BEFORE = 'processes from before'

/** Makes readings from the looks at all processes. */
export class Readings {
  readonly #settings: Settings
  readonly #point: ControlPoint

  constructor(settings: Settings, point: ControlPoint) {
    this.#settings = settings
    this.#point = point
  }

  /** Lists every process that holds work for a member, or may. */
  scopes(ref: MemberRef, seen: ShownAll): readonly LoadScope[] {
    const { process, shown, others } = seen
    const scopes: LoadScope[] = [toScope(process, ref, shown.members.get(keyOf(ref)), shown)]
    for (const { process: other, shown: there } of others.read)
      scopes.push(this.#old(other, ref, there))
    const unread = (scope: string, note: string, { incarnation = '', old = true } = {}): void => {
      const base = { scope, incarnation, sampledAt: shown.sampledAt, active: 0, queued: 0 }
      scopes.push({ ...base, state: 'unread', inForce: false, old, note })
    }
    for (const { process: other, note, listed } of others.unread) {
      if (!listed && this.#point.unseen.isGivenUp(other)) {
        if (this.#settings.oldWorkers === 'accept') scopes.push(givenUp(other, shown.sampledAt))
        continue
      }
      // In one that has never served the socket no hold can have been confirmed.
      const old = this.#point.others.isOld(other.scope)
      unread(other.scope, note, { old, ...(old && { incarnation: other.incarnation ?? '' }) })
    }
    if (others.blind !== undefined && this.#settings.oldWorkers !== 'accept')
      unread(UNLISTED, others.blind)
    const blindness = this.#point.unseen.blindness()
    if (blindness?.refuses === true) unread(BEFORE, blindness.why)
    return scopes
  }

  /**
   * The ended processes: all that are not listed, if the master listed every one; otherwise those that were seen to
   * end, or that the option oldWorkers gives up.
   */
  ended({ others }: ShownAll): NonNullable<Snapshot['ended']> {
    if (others.complete) return 'unlisted'
    const { unseen, others: known } = this.#point
    const given = others.unread.filter(
      ({ process, listed }) => !listed && unseen.isGivenUp(process),
    )
    return [
      ...known.ended,
      ...given.map(({ process }) => process.scope),
      ...(others.blind === undefined || this.#settings.oldWorkers === 'accept' ? [UNLISTED] : []),
      ...(unseen.blindness()?.refuses === true ? [] : [BEFORE]),
    ]
  }

  /**
   * The scope of a process from before a reload: it takes no more changes, so clients that it let in can still come.
   */
  #old(process: Process, ref: MemberRef, shown: ShownProcess): LoadScope {
    const { offRow, door } = process
    const row = offRow.isOwn(ref) ? shown.members.get(keyOf(ref)) : undefined
    const base = { ...toScope(process, ref, row, shown), old: true }
    if (offRow.isBlind(ref))
      return { ...base, state: 'unread', note: 'its streams could not be listed' }
    const admin = through(process, ref, shown)
    if (admin === undefined) return { ...base, note: 'a process from before a reload', open: false }
    const [is, end] = door.left === 1 ? ['connection is', 'ends'] : ['connections are', 'end']
    const note = `a process from before a reload, which takes no more changes; ${door.left} ${is} left in it that could bring another request, and ${end} by timeout http-keep-alive or by hard-stop-after`
    // Its clients are given up, but not their work in flight.
    return { ...base, note, ...(!this.#point.unseen.isGivenUp(process) && { admin }) }
  }

  /** The first old process through which clients can still reach a member, if that is accepted. */
  #openDoor(ref: MemberRef, { others }: ShownAll): Process | undefined {
    return others.read.find(({ process, shown }) => {
      const admin = through(process, ref, shown)
      return admin !== undefined && admin !== 'maint' && this.#point.unseen.isGivenUp(process)
    })?.process
  }

  /** Makes the reading of an absent member. */
  absent(ref: MemberRef, seen: ShownAll): AbsentReading {
    const scopes = this.scopes(ref, seen)
    if (!seen.process.view.isDisabled(ref.pool)) return { ref, present: false, scopes }
    const hint = `backend ${ref.pool} is disabled in the configuration`
    return { ref, present: false, scopes, hints: [hint] }
  }

  /** Makes the reading of a present member. */
  present(
    ref: MemberRef,
    shown: ShownServer,
    seen: ShownAll,
    followers: readonly MemberRef[],
  ): PresentReading {
    const { state, own, inherited } = shown
    const { process, others } = seen
    const scopes = this.scopes(ref, seen)
    const door = this.#openDoor(ref, seen)
    const unverified = this.#unverified(shown, seen, door)
    const offRow = [process, ...others.read.map(({ process: of }) => of)]
      .map((of) => of.offRow.of(ref))
      .reduce((sum, count) => sum + count, 0)
    const hints = toHints(shown, followers, offRow)
    const { agent } = shown.row
    const setBy = agent && nameOfAgent(agent, state.agent)
    const { advice } = this.#point.opened
    const { address, port } = state
    // A server without a port is reached at the port that its clients asked for; one without an address has neither.
    const place = address === '-' ? {} : port === 0 ? { address } : { address, port }
    return {
      ref,
      present: true,
      identity: identityOf(state),
      ...place,
      weight: state.weight,
      own,
      ...(inherited === undefined ? {} : { inherited }),
      serves: wouldServe(shown),
      health: toHealth(shown),
      scopes,
      native: {
        admin: state.admin,
        weight: state.weight,
        ...(followers.length === 0
          ? {}
          : { followers: followers.map(({ pool, member }) => ({ pool, member })) }),
      },
      ...(unverified === undefined ? {} : { unverified }),
      ...(door === undefined ? {} : { sealed: false }),
      ...(setBy === undefined ? {} : { setBy }),
      ...(hints.length === 0 ? {} : { hints }),
      ...(advice === undefined ? {} : { advice }),
    }
  }

  #unverified(
    { ref, row, state }: ShownServer,
    { process, shown, others }: ShownAll,
    door: Process | undefined,
  ): string | undefined {
    const { unseen } = this.#point
    if (row.mode === 'syslog')
      return `HAProxy does not count the messages that it sends to the servers of a backend in mode log`
    const reused = whyReused(shown, state, process.view)
    if (reused !== undefined) return reused
    if (process.offRow.isBlind(ref))
      return 'work at its address may stand in the row of a server that had this address before: a socket of level user does not list it'
    const unlisted = [{ process, shown }, ...others.read].flatMap(
      ({ process: of, shown: there }) => {
        const member = there.members.get(keyOf(ref))
        return (member && of.lines.blindness(ref, member.row)) ?? []
      },
    )[0]
    if (unlisted !== undefined)
      return `a request that comes from the queue, or waits for its retry, can be in no count, and the streams could not be listed (${unlisted})`
    if (door !== undefined) {
      const { left } = door.door
      return `${left} ${left === 1 ? 'connection' : 'connections'} of ${door.scope}, a process from before a reload, could still bring a request to it: with oldWorkers: 'wait' the drain waits for them`
    }
    const blindness = unseen.blindness()
    if (blindness?.refuses === false) return blindness.why
    const given = others.unread.find(({ process }) => unseen.isGivenUp(process))
    if (given !== undefined) {
      return `${given.process.scope} is ${given.note}, and was given up by the option oldWorkers`
    }
    return others.blind
  }
}

/** A process that was given up: nothing shows that it has ended, and what it held may go on. */
function givenUp({ scope, incarnation = '' }: Process, sampledAt: number): LoadScope {
  const note = "given up by oldWorkers: 'accept'"
  return { scope, incarnation, state: 'ended', sampledAt, active: 0, queued: 0, old: true, note }
}

/** The state in which clients can still reach a member through an old process; undefined if none can. */
function through(
  { door, offRow }: Process,
  ref: MemberRef,
  { members }: ShownProcess,
): ShownServer['own'] | undefined {
  if (door.closed) return undefined
  if (offRow.isOwn(ref)) return members.get(keyOf(ref))?.own
  return offRow.isReached(ref) ? 'ready' : undefined
}

function toScope(
  process: Process,
  ref: MemberRef,
  member: ShownServer | undefined,
  shown: ShownProcess,
): LoadScope {
  const offRow = process.offRow.of(ref)
  const isReleased = offRow === 0 && !process.offRow.isReached(ref)
  const base = {
    scope: process.scope,
    incarnation: process.incarnation ?? '',
    state: 'read' as const,
    sampledAt: shown.sampledAt,
    lived: shown.info.lived,
    inForce: true,
  }
  // HAProxy deletes a server only once nothing is attached to it.
  if (member === undefined)
    return { ...base, active: offRow, queued: 0, ...(isReleased && { released: true }) }
  const { pooled, arrivals } = member.row
  const { lines } = process
  const queued = member.row.queued + lines.hidden(member.ref, member.row)
  const hides = lines.mayHide(member.ref, member.row) ? { mayHide: true } : {}
  const active = member.row.active + offRow
  const oldest = active === 0 ? undefined : lines.oldest(member.ref, shown.sampledAt)
  const age = oldest === undefined ? {} : { oldest: Math.max(0, oldest) }
  return { ...base, active, queued, ...hides, pooled, arrivals, ...age }
}

/** How many servers of each backend would get work. */
export function toPools(shown: ShownProcess, balancer: string | undefined): PoolReading[] {
  return [...shown.pools].map(([pool, { serving, total }]) => ({
    pool,
    ...(balancer === undefined ? {} : { balancer }),
    serving,
    total,
    whenNone: 'refuse',
  }))
}

function toHints(
  { row, state, own, inherited }: ShownServer,
  followers: readonly MemberRef[],
  offRow: number,
): string[] {
  const hints = row.agent === undefined ? [] : [...hintsOfAgent(row.agent, state.agent)]
  if (offRow > 0) {
    hints.push(
      `${offRow} in flight to its address ${offRow === 1 ? 'belongs' : 'belong'} to a server that had this address before`,
    )
  }
  if (own === 'ready') hints.push(...takenAlong(followers))
  if (own === 'ready' && state.weight === 0) hints.push('weight 0 keeps it out of balancing')
  if (row.tracked !== '') {
    hints.push(
      `it tracks ${row.tracked}${inherited === undefined ? '' : ` and inherits '${inherited}' from it: only making ${row.tracked} ready opens it`}`,
    )
  }
  return hints
}

/** The health by HAProxy's checks; `up` means that one has passed since the server left maintenance. */
export function toHealth({ row, state, own, inherited }: ShownServer): Health {
  // No check runs, and none can run before the inherited state changes: the name, or the server it tracks.
  if (inherited === 'maint' && own !== 'maint') return 'unchecked'
  if (own === 'maint' || inherited === 'maint' || row.status.startsWith('MAINT')) {
    return state.checks || row.tracked !== '' ? 'unknown' : 'unchecked'
  }
  if (row.status.startsWith('DOWN')) return 'down'
  if (row.tracked !== '') return trackedHealth(row.status)
  const { check } = row
  if (check === undefined) return state.checks ? 'unknown' : 'unchecked'
  return hasPassed(check) ? 'up' : 'unknown'
}
