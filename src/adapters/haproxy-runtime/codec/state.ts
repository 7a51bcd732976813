/**
 * Decoder of `show servers state`, and of its admin mask.
 *
 * The mask is decimal. Bits: 0x01 forced maintenance, 0x02 inherited by `track`, 0x04 "disabled" in
 * the configuration (a memory only: a server once made ready keeps it and serves), 0x08 forced
 * drain, 0x10 drain inherited by `track`, 0x20 name not resolved, 0x40 name set over the CLI.
 */
import { formatSocket } from '../../../provider/address.js'
import type { AdminState } from '../../../provider/contract.js'
import { malformed } from './replies.js'

/** One server's line. */
export interface ServerState {
  readonly pool: string
  readonly iid: string
  readonly name: string
  readonly sid: string
  /** `-` for a unix socket, or where no address is known. */
  readonly address: string
  readonly port: number
  /** 0 stopped, 1 starting, 2 running, 3 stopping. */
  readonly op: number
  readonly admin: number
  readonly weight: number
  readonly initialWeight: number
  /** A health check is configured for it (also while none runs). */
  readonly checked: boolean
  /** Its address comes from a name: it may change or go. */
  readonly resolved: boolean
}

const COLUMNS = {
  be_id: 'iid',
  be_name: 'pool',
  srv_id: 'sid',
  srv_name: 'name',
  srv_addr: 'address',
  srv_op_state: 'op',
  srv_admin_state: 'admin',
  srv_uweight: 'weight',
  srv_iweight: 'initialWeight',
  srv_check_state: 'checkState',
  srv_fqdn: 'fqdn',
  srv_port: 'port',
  srvrecord: 'record',
} as const

/** Bit of srv_check_state: a check is configured. */
const CHECK_CONFIGURED = 0x02

/**
 * Reads a reply of `show servers state`.
 *
 * @throws `MALFORMED_REPLY` where the header is missing or a line has no mask
 */
export function parseServersState(reply: string): ServerState[] {
  const lines = reply.split('\n')
  const at = lines.findIndex((line) => line.startsWith('# be_id'))
  const header = lines[at]
  if (header === undefined) throw malformed("the reply of 'show servers state'", reply)
  const index = new Map<string, number>()
  header
    .slice(2)
    .split(' ')
    .forEach((name, column) => index.set(name, column))
  for (const name of Object.keys(COLUMNS).slice(0, 9)) {
    if (!index.has(name)) throw malformed(`'show servers state' with the column ${name}`, header)
  }
  return lines
    .slice(at + 1)
    .filter((line) => line !== '')
    .map((line) => toState(line, index))
}

function toState(line: string, index: ReadonlyMap<string, number>): ServerState {
  const cells = line.split(' ')
  const text = (name: keyof typeof COLUMNS): string => cells[index.get(name) ?? -1] ?? '-'
  const admin = Number(text('srv_admin_state'))
  const op = Number(text('srv_op_state'))
  if (!Number.isInteger(admin) || !Number.isInteger(op)) {
    throw malformed("a line of 'show servers state' with its state and mask", line)
  }
  const check = Number(text('srv_check_state')) || 0
  return {
    pool: text('be_name'),
    iid: text('be_id'),
    name: text('srv_name'),
    sid: text('srv_id'),
    address: text('srv_addr'),
    port: Number(text('srv_port')) || 0,
    op,
    admin,
    weight: Number(text('srv_uweight')),
    initialWeight: Number(text('srv_iweight')),
    checked: (check & CHECK_CONFIGURED) !== 0,
    resolved: text('srv_fqdn') !== '-' || text('srvrecord') !== '-',
  }
}

/** The server's own state: what was set on itself. */
export function ownState(admin: number): AdminState {
  if ((admin & 0x01) !== 0) return 'maint'
  return (admin & 0x08) !== 0 ? 'drain' : 'ready'
}

/** What it inherits: from the server it tracks, or because its name does not resolve. */
export function inheritedState(admin: number): AdminState | undefined {
  if ((admin & 0x22) !== 0) return 'maint'
  return (admin & 0x10) !== 0 ? 'drain' : undefined
}

/**
 * Whether a status text and a mask can both be true. Status comes with the counts, the mask from
 * another command: between the two somebody may have changed it.
 */
export function statusFitsMask(status: string, admin: number): boolean {
  const maint = (admin & 0x23) !== 0
  const drain = (admin & 0x18) !== 0
  if (status.startsWith('MAINT')) return maint
  if (status.startsWith('DRAIN')) return drain && !maint
  if (/^(UP|no check)/.test(status)) return !drain && !maint
  if (/^(DOWN|NOLB)/.test(status)) return !maint
  return true
}

/** Address and port tell which machine a server is: ids move on reload. */
export function identityOf(state: ServerState): string {
  return formatSocket(state.address, state.port)
}

/**
 * Whether the server found is the one expected. A server that comes from a name and has lost its
 * address (resolution failed) is still the same: nobody else has its place yet.
 */
export function isSameServer(expected: string | undefined, found: ServerState): boolean {
  if (expected === undefined || identityOf(found) === expected) return true
  return found.address === '-' && found.resolved
}
