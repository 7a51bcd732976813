import type { CallContext } from '../../../provider/contract.js'
import type { Clock } from '../../../provider/clock.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { pathOf, type Row, rowsOf } from '../codec/nitro.js'
import type { NitroSession } from './session.js'

/** How long one address is waited for while another one could do, in milliseconds. */
export const HEAD_START = 1_000

/** One address, and what is asked there. */
export interface Address {
  readonly session: NitroSession
  readonly standings: Standings
}

/** An address that is in charge, as it stood when it was asked. */
export interface InCharge extends Address {
  readonly standing: Standing
}

/** Who answers at an address, and since when. */
export interface Standing {
  /** Names the node: its NSIP, or what we call it where it does not say. */
  readonly node: string
  /** The addresses of all nodes of its pair, as it knows them; none where it does not say. */
  readonly nodes: readonly string[]
  /** Whether it holds the traffic, and takes changes for the pair. */
  readonly role: 'alone' | 'primary' | 'secondary' | 'cluster' | 'unknown'
  /** Changes with the role and with a reboot. */
  readonly incarnation: string
  /** When it was booted, with which its counters begin; left out where it does not say. */
  readonly boot?: string
  /** What could not be read, and why that matters. */
  readonly unverified?: string
}

/** What does not change while a node keeps its role. */
interface Known {
  readonly key: string
  readonly node: string
  readonly nodes: readonly string[]
}

interface Role {
  readonly role: Standing['role']
  /** Since when; empty where it does not say. */
  readonly since: string
}

/**
 * Reads the standing of one address again and again. A SNIP reaches whichever node is primary, so
 * the node behind an address can change between two calls.
 */
export class Standings {
  readonly #session: NitroSession
  #cluster: boolean | undefined
  #known: Known | undefined
  #boot: { readonly at: string; readonly logins: number } | undefined
  #asked: { readonly role: Role; readonly at: number; readonly clock: Clock } | undefined

  constructor(session: NitroSession) {
    this.#session = session
  }

  /**
   * Asks for the role, and for the time of boot: a reboot takes a minute and ends our session, so the
   * last answer does where only the states were read (`boot: false`).
   */
  // eslint-disable-next-line complexity -- what each answer leaves unknown decides what is asked next
  async read(ctx: CallContext, { boot: asks = true } = {}): Promise<Standing> {
    const cluster = this.#cluster ?? (await this.#isCluster(ctx))
    if (cluster !== 'forbidden') this.#cluster = cluster
    const known = asks ? undefined : this.#lastBoot
    const [ha, asked] = await Promise.all([
      this.#cluster ? undefined : this.#ha(ctx),
      known ?? this.#askBoot(ctx),
    ])
    // Behind one address another node can answer: where it does not say since when, its boot tells.
    const told = ha === undefined || ha.since !== '' || ha.role === 'alone'
    const boot = told || known === undefined ? asked : await this.#askBoot(ctx)
    const unverified = this.#cluster
      ? 'this is a cluster: whether its counts cover every node is not documented; OUT OF SERVICE reached by itself is the proof that counts'
      : ha?.role === 'unknown'
        ? "the node's role could not be read, so a secondary would not be told from the primary: allow 'show ha node' to this user"
        : cluster === 'forbidden'
          ? "whether this is a cluster could not be read, and the counts of one may not cover every node: allow 'show cluster instance' to this user"
          : undefined
    const role = this.#cluster ? 'cluster' : (ha?.role ?? 'unknown')
    const key = `${role} ${ha?.since ?? ''} ${boot}`
    if (this.#known?.key !== key) this.#known = { key, ...(await this.nodes(ctx)) }
    const { node, nodes } = this.#known
    const incarnation = [role, ha?.since, boot]
      .filter((part) => part !== undefined && part !== '')
      .join(', ')
    return {
      node,
      nodes,
      role,
      incarnation: `${node}: ${incarnation}`,
      ...(boot === '' ? {} : { boot }),
      ...(unverified === undefined ? {} : { unverified }),
    }
  }

  /**
   * The role alone.
   *
   * @param within - an answer that was asked for in the last so many milliseconds does
   */
  async role(ctx: CallContext, within = 0): Promise<Standing['role']> {
    if (this.#cluster === true) return 'cluster'
    const last = this.#asked
    if (last?.clock === ctx.clock && ctx.clock.now() - last.at < within) return last.role.role
    return (await this.#ha(ctx)).role
  }

  /** Which node answers, and the nodes of its pair. */
  async nodes(ctx: CallContext): Promise<Pick<Known, 'node' | 'nodes'>> {
    if (this.#cluster === true) return { node: 'cluster', nodes: [] }
    const rows = await this.#rows('config', 'hanode', ctx)
    const told = rows === 'forbidden' ? [] : rows
    const addressOf = (row: Row): string => row.at('ipaddress').word() ?? ''
    const own = told.find((row) => row.at('id').word() === '0') ?? told[0]
    const node = own === undefined ? '' : addressOf(own)
    return {
      node: node === '' ? new URL(this.#session.url).host : node,
      nodes: told.map(addressOf).filter((address) => address !== ''),
    }
  }

  /** The other nodes of its pair, and what it calls them; none where it does not say. */
  async peers(
    ctx: CallContext,
  ): Promise<readonly { readonly node: string; readonly state: string }[]> {
    const rows = await this.#rows('config', 'hanode', ctx)
    if (rows === 'forbidden') return []
    return rows
      .filter((row) => row.at('id').word() !== '0')
      .map((row) => ({
        node: row.at('ipaddress').word() ?? '',
        state: row.at('state').word()?.trim() ?? '',
      }))
  }

  get #lastBoot(): string | undefined {
    return this.#boot?.logins === this.#session.logins ? this.#boot.at : undefined
  }

  async #ha(ctx: CallContext): Promise<Role> {
    const at = ctx.clock.now()
    const role = await this.#askRole(ctx)
    this.#asked = { role, at, clock: ctx.clock }
    return role
  }

  async #askRole(ctx: CallContext): Promise<Role> {
    const stats = await this.#rows('stat', 'hanode', ctx)
    if (stats === 'forbidden') return { role: 'unknown', since: '' }
    const [stat] = stats
    if (stat !== undefined) {
      const status = stat.at('hacurstatus').word()?.toUpperCase()
      if (status === 'NO') return { role: 'alone', since: '' }
      const master = stat.at('hacurmasterstate').word()
      if (master !== undefined)
        return { role: toRole(master), since: stat.at('transtime').word() ?? '' }
    }
    const config = await this.#rows('config', 'hanode', ctx)
    if (config === 'forbidden') return { role: 'unknown', since: '' }
    const own = config.find((row) => row.at('id').word() === '0') ?? config[0]
    const state = own?.at('state').word()
    if (state !== undefined) return { role: toRole(state), since: '' }
    // One of a pair that has nothing to say of it may have become the secondary.
    const was = this.#asked?.role.role
    if (was !== 'primary' && was !== 'secondary') return { role: 'alone', since: '' }
    throw new DrainableError(
      'MALFORMED_REPLY',
      `${this.#session.url} was '${was}' and no longer reports whether it is one of a pair`,
      { provider: 'citrix-adc', retryable: true },
    )
  }

  async #askBoot(ctx: CallContext): Promise<string> {
    const { logins } = this.#session
    const rows = await this.#rows('stat', 'system', ctx)
    const row = rows === 'forbidden' ? undefined : rows[0]
    const moment = row?.at('starttime').word() ?? row?.at('starttimelocal').word()
    const at = moment === undefined ? '' : `up since ${moment}`
    this.#boot = { at, logins }
    return at
  }

  async #isCluster(ctx: CallContext): Promise<boolean | 'forbidden'> {
    const rows = await this.#rows('config', 'clusterinstance', ctx)
    return rows === 'forbidden' ? rows : rows[0]?.at('clid').word() !== undefined
  }

  /** Its rows; none where this build does not know the type. */
  async #rows(
    tree: 'config' | 'stat',
    type: string,
    ctx: CallContext,
  ): Promise<readonly Row[] | 'forbidden'> {
    try {
      return rowsOf(await this.#session.get(pathOf(tree, type), ctx), type)
    } catch (error) {
      if (isDrainableError(error, 'FORBIDDEN')) return 'forbidden'
      if (isDrainableError(error, 'REJECTED', 'NOT_FOUND')) return []
      throw error
    }
  }
}

function toRole(state: string): Standing['role'] {
  return state.trim().toLowerCase() === 'primary' ? 'primary' : 'secondary'
}

/** Whether this standing may be read from and written to. */
export function isInCharge(role: Standing['role']): boolean {
  return role !== 'secondary'
}

/** The error of an address that is not in charge. */
export function notInCharge(url: string): DrainableError {
  return new DrainableError(
    'UNREACHABLE',
    `${url} is the secondary node of its pair: it holds no traffic and keeps changes to itself; give the addresses of both nodes or a SNIP with management access`,
    { provider: 'citrix-adc' },
  )
}
