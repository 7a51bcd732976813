import { caught } from '../../../kit/errors.js'
import type { CallContext } from '../../../provider/contract.js'
import type { Clock } from '../../../provider/clock.js'
import { DrainableError } from '../../../provider/error.js'
import { pathOf, type Row, rowsOf } from '../codec/nitro.js'
import type { NitroSession } from './session.js'

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

/** A node of a pair, as one of them knows it. */
interface Node {
  readonly address: string
  readonly isSelf: boolean
  readonly state: string
}

interface Role {
  readonly role: Standing['role']
  /** Since when; empty where it does not say. */
  readonly since: string
}

const UNVERIFIED: Readonly<Partial<Record<Standing['role'], string>>> = {
  cluster:
    'this is a cluster: whether its counts cover every node is not documented; OUT OF SERVICE reached by itself is the proof that counts',
  unknown:
    "the node's role could not be read, so a secondary would not be told from the primary: allow 'show ha node' to this user",
}
const MAYBE_CLUSTER =
  "whether this is a cluster could not be read, and the counts of one may not cover every node: allow 'show cluster instance' to this user"

/**
 * Reads the standing of one address again and again. A SNIP reaches whichever node is primary, so
 * the node behind an address can change between two calls.
 */
export class Standings {
  readonly #session: NitroSession
  /** Undefined: not known yet, or not to be read by this user. */
  #isCluster: boolean | undefined
  #boot: { readonly at: string; readonly logins: number } | undefined
  #asked: { readonly role: Role; readonly at: number; readonly clock: Clock } | undefined
  /** The nodes of its pair, as long as it keeps its role. */
  #nodes: { readonly key: string; readonly all: readonly Node[] } | undefined

  constructor(session: NitroSession) {
    this.#session = session
  }

  /**
   * Asks for the role, and for the time of boot: a reboot takes a minute and ends our session, so the
   * last answer does where only the states were read (`boot: false`).
   */
  async read(ctx: CallContext, { boot: asks = true } = {}): Promise<Standing> {
    this.#isCluster ??= await this.#askCluster(ctx)
    const known = !asks && this.#boot?.logins === this.#session.logins ? this.#boot.at : undefined
    const [{ role, since }, asked] = await Promise.all([
      this.#askRole(ctx),
      known ?? this.#askBoot(ctx),
    ])
    // Behind one address another node can answer: where it does not say since when, its boot tells.
    const isTold = since !== '' || role === 'alone' || role === 'cluster'
    const boot = isTold || known === undefined ? asked : await this.#askBoot(ctx)
    const key = [role, since, boot].filter((part) => part !== '').join(', ')
    if (this.#nodes?.key !== key) this.#nodes = { key, all: await this.nodes(ctx) }
    const { all } = this.#nodes
    const node = role === 'cluster' ? role : nameOf(all, this.#session)
    const unverified =
      UNVERIFIED[role] ?? (this.#isCluster === undefined ? MAYBE_CLUSTER : undefined)
    return {
      node,
      nodes: all.map(({ address }) => address).filter((address) => address !== ''),
      role,
      incarnation: `${node}: ${key}`,
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
    const last = this.#asked
    if (last?.clock === ctx.clock && ctx.clock.now() - last.at < within) return last.role.role
    return (await this.#askRole(ctx)).role
  }

  /** The nodes of its pair; none where it does not say. */
  async nodes(ctx: CallContext): Promise<readonly Node[]> {
    const rows = this.#isCluster === true ? [] : await this.#rows('config', 'hanode', ctx)
    if (rows === 'forbidden') return []
    return rows.map((row) => ({
      address: row.at('ipaddress').word() ?? '',
      isSelf: row.at('id').word() === '0',
      state: row.at('state').word()?.trim() ?? '',
    }))
  }

  async #askCluster(ctx: CallContext): Promise<boolean | undefined> {
    const rows = await this.#rows('config', 'clusterinstance', ctx)
    return rows === 'forbidden' ? undefined : rows[0]?.at('clid').word() !== undefined
  }

  async #askRole(ctx: CallContext): Promise<Role> {
    if (this.#isCluster === true) return { role: 'cluster', since: '' }
    const at = ctx.clock.now()
    const role = (await this.#roleOfStat(ctx)) ?? (await this.#roleOfConfig(ctx))
    this.#asked = { role, at, clock: ctx.clock }
    return role
  }

  async #roleOfStat(ctx: CallContext): Promise<Role | undefined> {
    const rows = await this.#rows('stat', 'hanode', ctx)
    if (rows === 'forbidden') return { role: 'unknown', since: '' }
    if (rows[0]?.at('hacurstatus').word()?.toUpperCase() === 'NO')
      return { role: 'alone', since: '' }
    const master = rows[0]?.at('hacurmasterstate').word()
    const since = rows[0]?.at('transtime').word() ?? ''
    return master === undefined ? undefined : { role: toRole(master), since }
  }

  async #roleOfConfig(ctx: CallContext): Promise<Role> {
    const rows = await this.#rows('config', 'hanode', ctx)
    if (rows === 'forbidden') return { role: 'unknown', since: '' }
    const own = rows.find((row) => row.at('id').word() === '0') ?? rows[0]
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

  /** Its rows; none where this build does not know the type. */
  #rows(
    tree: 'config' | 'stat',
    type: string,
    ctx: CallContext,
  ): Promise<readonly Row[] | 'forbidden'> {
    const read = async (): Promise<readonly Row[]> =>
      rowsOf(await this.#session.get(pathOf(tree, type), ctx), type)
    return caught(ctx, read, (error) => {
      if (error.code === 'FORBIDDEN') return 'forbidden'
      if (error.code === 'REJECTED' || error.code === 'NOT_FOUND') return []
      throw error
    })
  }
}

function nameOf(nodes: readonly Node[], { url }: NitroSession): string {
  const own = nodes.find(({ isSelf }) => isSelf) ?? nodes[0]
  return own === undefined || own.address === '' ? new URL(url).host : own.address
}

function toRole(state: string): Standing['role'] {
  return state.trim().toLowerCase() === 'primary' ? 'primary' : 'secondary'
}

/** Whether this standing may be read from and written to. */
export function isInCharge(role: Standing['role']): boolean {
  return role !== 'secondary'
}
