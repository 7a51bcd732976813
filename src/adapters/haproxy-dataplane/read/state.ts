// A server's state from its two sources, the statistics and admin_state.
//
// The API's admin_state is read from HAProxy's admin mask, but as if the mask were printed in
// hexadecimal: 12 (drained, and `disabled` in the file) and 16 (drained through the server it
// tracks) both come out as "maint", 40 (drained, name not resolved) as "ready", 64 (ready, name set
// on the command line) as "maint". The statistics' status text is right about maintenance and
// drain, but says DOWN for a server that is drained and failing its checks. What can be in the
// mask, by what the two say:
//
//   status            admin_state   own state
//   MAINT             maint         maint (any other admin_state contradicts)
//   MAINT (via b/s)   drain         drain: mask 10
//   MAINT (via b/s)   ready         not of one moment: every such mask is misread as drain or maint
//   MAINT (via b/s)   maint         hidden behind the maintenance that it inherits
//   MAINT (resol...)  ready         drain: mask 40 (100, which is `disabled` in the file, was made ready and
//                                   got its name on the command line, says the same)
//   MAINT (resol...)  drain         drain: mask 6c, or not of one moment; where it tracks another hidden, mask 30
//   MAINT (resol...)  maint         hidden behind the maintenance of its name
//   DRAIN             drain         drain
//   DRAIN             maint         drain; hidden behind the drain that it inherits where it tracks another
//   UP, no check ...  ready         ready (any other contradicts)
//   DOWN              ready, drain  as said
//   DOWN              maint         cannot be told
//
// A state that is hidden is taken for the one that hides it: nothing but that is in force, so a drain is
// judged by the counts at once, and nothing is sent that could lower what can't be seen. It is not
// called sealed, and an undo waits until the own state shows.
import { hasPassed, trackedHealth } from '../../../kit/haproxy/checks.js'
import { isIP } from '../../../provider/builtins.js'
import { atLeast } from '../../../provider/member-ref.js'
import type { AdminState, Health } from '../../../provider/contract.js'
import type { RuntimeServer, StatsRow } from '../codec/replies.js'

/** The state by both sources together. */
export interface Verdict {
  readonly own: AdminState | 'unknown'
  readonly inherited?: AdminState
  /** Why the own state is unknown or hidden, in a few words. */
  readonly doubt?: string
  /** The own state can't be seen: `own` is the inherited one, which is the one in force. */
  readonly hidden?: true
  /** What sets the inherited state, as words for a sentence. */
  readonly setBy?: string
}

/** What a process does with the member: its own state, or one that it inherits and that covers it. */
export function taken({ own, inherited }: Verdict): Verdict['own'] {
  if (inherited === undefined || (own !== 'unknown' && atLeast(own, inherited))) return own
  return inherited
}

/**
 * The state that a server is held in: weight 0 keeps new work away as a drain does, whoever set it.
 * A durable drain that a reload has left behind is told by nothing else.
 */
export function held({ own }: Verdict, { weight }: Pick<StatsRow, 'weight'>): Verdict['own'] {
  return own === 'ready' && weight === 0 ? 'drain' : own
}

type StatusCells = Pick<StatsRow, 'status' | 'tracked'>

/**
 * The own and the inherited state of a server.
 *
 * @param row - its row in the statistics
 * @param admin - what `admin_state` says; undefined where it was not asked
 */
export function judge(row: StatusCells, admin: RuntimeServer['admin']): Verdict {
  const { status, tracked } = row
  const said = `status '${status}', admin_state '${admin ?? 'not asked'}'`
  if (status.startsWith('MAINT')) {
    if (status.startsWith('MAINT (')) return inheritedMaint(row, admin, said)
    return admin === undefined || admin === 'maint' ? { own: 'maint' } : contradiction(said)
  }
  if (status.startsWith('DRAIN')) {
    if (admin === undefined && tracked !== undefined) return hiddenDrain(tracked, said)
    if (admin === undefined || admin === 'drain') return { own: 'drain' }
    if (admin === 'maint') {
      return tracked === undefined ? { own: 'drain' } : hiddenDrain(tracked, said)
    }
    return contradiction(said)
  }
  if (status.startsWith('DOWN')) {
    if (admin === 'ready' || admin === 'drain') return { own: admin }
    return {
      own: 'unknown',
      doubt: `a server that is DOWN does not show whether it is drained (${said})`,
    }
  }
  if (serving(status) || status.startsWith('NOLB')) {
    return admin === undefined || admin === 'ready' ? { own: 'ready' } : contradiction(said)
  }
  return { own: 'unknown', doubt: `the status is not known to this version of drainable (${said})` }
}

function contradiction(said: string): Verdict {
  return { own: 'unknown', doubt: `the API contradicts itself (${said})` }
}

/** `MAINT (resolution)`: its name does not resolve. */
export function isUnresolved(status: string): boolean {
  return status.startsWith('MAINT (res')
}

function inheritedMaint(
  { status, tracked }: StatusCells,
  admin: RuntimeServer['admin'],
  said: string,
): Verdict {
  const unresolved = isUnresolved(status)
  const setBy = unresolved ? 'its name, which does not resolve' : setByLeader(tracked)
  // What the API misreads so has our own drain beside it; or the name was found after the status was read.
  const isDrain = unresolved
    ? admin === 'ready' || (admin === 'drain' && tracked === undefined)
    : admin === 'drain'
  if (isDrain) return { own: 'drain', inherited: 'maint', setBy }
  // The other one was opened after the status was read.
  if (admin === 'ready') return contradiction(said)
  const whose = tracked === undefined ? '' : ` of ${tracked}`
  const why = unresolved ? 'of a name that does not resolve' : `that it inherits${whose}`
  const doubt = `its own state is hidden behind a maintenance ${why} (${said})`
  return { own: 'maint', inherited: 'maint', hidden: true, setBy, doubt }
}

function hiddenDrain(tracked: string, said: string): Verdict {
  return {
    own: 'drain',
    inherited: 'drain',
    hidden: true,
    setBy: setByLeader(tracked),
    doubt: `its own state is hidden behind the drain of ${tracked}, which it tracks (${said}): make that one ready first`,
  }
}

function setByLeader(tracked: string | undefined): string {
  return `${tracked ?? 'another server'}, which it tracks`
}

/** Whether the status text says that the server may get new work. */
export function serving(status: string): boolean {
  return status === 'no check' || /^UP\b/.test(status)
}

/** What HAProxy's own checks say: `up` means that one has passed since the server left maintenance. */
export function healthOf({ status, tracked, check, agent }: HealthCells): Health {
  if (status.startsWith('DOWN') || status.startsWith('NOLB')) return 'down'
  if (status === 'no check') return 'unchecked'
  if (status.startsWith('MAINT')) return 'unknown'
  if (tracked !== undefined) return trackedHealth(status)
  if (check !== undefined) return hasPassed(check) ? 'up' : 'unknown'
  if (agent === undefined) return status.startsWith('DRAIN') ? 'unchecked' : 'unknown'
  // An agent is asked in maintenance too (2.6, 3.0, 3.2 and 3.4): what it says is of now.
  return agent.health >= agent.rise && agent.status !== 'INI' ? 'up' : 'unknown'
}

type HealthCells = Pick<StatsRow, 'status' | 'tracked' | 'check' | 'agent'>

/** Address and port out of the statistics' `addr`, such as `127.0.0.1:80` or `[::1]:80`; undefined for anything else. */
export function splitAddress(
  text: string,
): { readonly address: string; readonly port: number } | undefined {
  const [, v6, v4 = v6, port] = /^(?:\[(.+)\]|(.+)):(\d+)$/.exec(text) ?? []
  return v4 === undefined || isIP(v4) === 0 ? undefined : { address: v4, port: Number(port) }
}
