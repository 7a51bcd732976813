import { isIP } from '../../../provider/builtins.js'
import { formatSocket } from '../../../provider/address.js'
import type { AdminState } from '../../../provider/contract.js'
import { isDigits, malformed } from './replies.js'

/**
 * Decoder of `show servers state`, and of its admin mask.
 *
 * The mask is decimal. Bits: 0x01 forced maintenance, 0x02 inherited by `track`, 0x04 "disabled" in
 * the configuration (a memory only: a server once made ready keeps it and serves), 0x08 forced
 * drain, 0x10 drain inherited by `track`, 0x20 name not resolved, 0x40 name set over the CLI.
 */

/** One server's line. */
export interface ServerState {
  readonly pool: string
  readonly iid: string
  readonly name: string
  readonly sid: string
  /** `-` for a unix socket, or if no address is known. */
  readonly address: string
  readonly port: number
  /** 0 stopped, 1 starting, 2 running, 3 stopping. */
  readonly op: number
  readonly admin: number
  readonly weight: number
  readonly initialWeight: number
  /** Whether a health check is configured for it, and runs but for maintenance: `disable health` switches it off. */
  readonly checks: boolean
  /** The address of its agent; undefined if it has none. */
  readonly agent: string | undefined
  /** Whether its address comes from a name, so that it can change or vanish. */
  readonly resolved: boolean
  /** The name of which DNS lists the addresses (`_http._tcp.web` or `web`); undefined if it has none. */
  readonly source: string | undefined
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
  srv_agent_addr: 'agentAddress',
  srv_agent_port: 'agentPort',
  srvrecord: 'record',
} as const

/** All columns except those that a release can lack. */
const NEEDED = [...Object.keys(COLUMNS).slice(0, 9), 'srv_port']

/**
 * Bits of srv_check_state: a check is configured, and is not switched off by `disable health`. Maintenance leaves the
 * second one alone (2.6, 3.0, 3.2 and 3.4).
 */
const CHECK_CONFIGURED = 0x02
const CHECK_ENABLED = 0x04

/**
 * Reads a reply of `show servers state`.
 *
 * @throws `MALFORMED_REPLY` if the header is missing or a line has no mask
 */
export function parseServersState(reply: string): ServerState[] {
  const lines = reply.split('\n')
  const at = lines.findIndex((line) => line.startsWith('# be_id'))
  const header = lines[at]
  if (header === undefined) throw malformed("the reply of 'show servers state'", reply)
  const names = header.slice(2).split(' ')
  const index = new Map(names.map((name, column) => [name, column]))
  for (const name of NEEDED) {
    if (!index.has(name)) throw malformed(`'show servers state' with the column ${name}`, header)
  }
  const known = new Map<string, string>()
  return lines
    .slice(at + 1)
    .filter((line) => line !== '')
    .map((line) => {
      const state = toState(line, index)
      const name = `${state.pool}/${state.name}`
      if ((known.get(name) ?? line) !== line) throw malformed(`one line for ${name}`, line)
      known.set(name, line)
      return state
    })
}

function toState(line: string, index: ReadonlyMap<string, number>): ServerState {
  const cells = line.split(' ')
  const wrong = (expected: string): Error =>
    malformed(`a line of 'show servers state' with ${expected}`, line)
  if (cells.length !== index.size) throw wrong(`${index.size} words`)
  const text = (name: keyof typeof COLUMNS): string => cells[index.get(name) ?? -1] ?? '-'
  const number = (name: keyof typeof COLUMNS): number => {
    const value = text(name)
    if (value === '-' && !index.has(name)) return 0
    if (isDigits(value)) return Number(value)
    throw wrong(`a number in ${name}`)
  }
  const address = text('srv_addr')
  if (address !== '-' && isIP(address) === 0) throw wrong('an IP address in srv_addr, or -')
  if (text('be_name') === '' || text('srv_name') === '') throw wrong('its names')
  const source = [text('srvrecord'), text('srv_fqdn')].find((name) => name !== '-')
  const check = number('srv_check_state')
  const agentPort = number('srv_agent_port')
  const agentAddress = text('srv_agent_addr') === '-' ? address : text('srv_agent_addr')
  return {
    pool: text('be_name'),
    iid: text('be_id'),
    name: text('srv_name'),
    sid: text('srv_id'),
    address,
    port: number('srv_port'),
    op: number('srv_op_state'),
    admin: number('srv_admin_state'),
    weight: number('srv_uweight'),
    initialWeight: number('srv_iweight'),
    agent: agentPort === 0 ? undefined : formatSocket(agentAddress, agentPort),
    checks: (check & CHECK_CONFIGURED) !== 0 && (check & CHECK_ENABLED) !== 0,
    resolved: source !== undefined,
    source,
  }
}

/** The server's own state, as set on the server itself. */
export function ownState(admin: number): AdminState {
  if ((admin & 0x01) !== 0) return 'maint'
  return (admin & 0x08) !== 0 ? 'drain' : 'ready'
}

/** The state that it inherits from the server it tracks, or because its name does not resolve. */
export function inheritedState(admin: number): AdminState | undefined {
  if ((admin & 0x22) !== 0) return 'maint'
  return (admin & 0x10) !== 0 ? 'drain' : undefined
}

/**
 * Whether a status text and a mask are consistent. The status comes with the counts and the mask from another
 * command: another client can have changed the state between the two.
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

/**
 * Identifies the machine of a server by address and port, because ids change on reload. Empty for a server with a name
 * that has no address: no other server has its place yet.
 */
export function identityOf(state: ServerState): string {
  if (state.address === '-' && state.resolved) return ''
  return formatSocket(state.address, state.port)
}

/** Its address and port; undefined if it has none, because no other server is known by that. */
export function addressOf(state: ServerState | undefined): string | undefined {
  return state === undefined || state.address === '-' ? undefined : identityOf(state)
}
