import type { CallContext } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { pathOf, type Row, rowsOf } from '../codec/nitro.js'
import type { NitroSession } from './session.js'

/** Who answers at an address, and since when. */
export interface Standing {
  /** Names the node: its NSIP, or what we call it where it does not say. */
  readonly node: string
  /** Whether it holds the traffic, and takes changes for the pair. */
  readonly role: 'alone' | 'primary' | 'secondary' | 'cluster' | 'unknown'
  /** Changes with the role and with a reboot. */
  readonly incarnation: string
  /** What could not be read, and why that matters. */
  readonly unverified?: string
}

/** What does not change while a node keeps its role. */
interface Known {
  readonly key: string
  readonly node: string
}

/**
 * Reads the standing of one address again and again. A SNIP reaches whichever node is primary, so
 * the node behind an address can change between two calls.
 */
export class Standings {
  readonly #session: NitroSession
  #cluster: boolean | undefined
  #known: Known | undefined

  constructor(session: NitroSession) {
    this.#session = session
  }

  async read(ctx: CallContext): Promise<Standing> {
    const cluster = this.#cluster ?? (await this.#isCluster(ctx))
    if (cluster !== 'forbidden') this.#cluster = cluster
    const [ha, boot] = await Promise.all([
      this.#cluster ? undefined : this.#ha(ctx),
      this.#boot(ctx),
    ])
    const unverified = this.#cluster
      ? 'this is a cluster: whether its counts cover every node is not documented; OUT OF SERVICE reached by itself is the proof that counts'
      : ha?.role === 'unknown'
        ? "the node's role could not be read, so a secondary would not be told from the primary: allow 'show ha node' to this user"
        : cluster === 'forbidden'
          ? "whether this is a cluster could not be read, and the counts of one may not cover every node: allow 'show cluster instance' to this user"
          : undefined
    const role = this.#cluster ? 'cluster' : (ha?.role ?? 'unknown')
    const key = `${role} ${ha?.since ?? ''} ${boot}`
    if (this.#known?.key !== key) this.#known = { key, node: await this.#node(ctx) }
    const { node } = this.#known
    const incarnation = [role, ha?.since, boot]
      .filter((part) => part !== undefined && part !== '')
      .join(', ')
    return {
      node,
      role,
      incarnation: `${node}: ${incarnation}`,
      ...(unverified === undefined ? {} : { unverified }),
    }
  }

  /** The role alone: asked before each change. */
  async role(ctx: CallContext): Promise<Standing['role']> {
    if (this.#cluster === true) return 'cluster'
    return (await this.#ha(ctx)).role
  }

  async #ha(ctx: CallContext): Promise<{ role: Standing['role']; since: string }> {
    const stat = await this.#row('stat', 'hanode', undefined, ctx)
    if (stat === 'forbidden') return { role: 'unknown', since: '' }
    if (stat !== undefined) {
      const status = stat.at('hacurstatus').word()?.toUpperCase()
      if (status === 'NO') return { role: 'alone', since: '' }
      const master = stat.at('hacurmasterstate').word()
      if (master !== undefined)
        return { role: toRole(master), since: stat.at('transtime').word() ?? '' }
    }
    const config = await this.#row('config', 'hanode', '0', ctx)
    if (config === 'forbidden') return { role: 'unknown', since: '' }
    const state = config?.at('state').word()
    return { role: state === undefined ? 'alone' : toRole(state), since: '' }
  }

  async #boot(ctx: CallContext): Promise<string> {
    const row = await this.#row('stat', 'system', undefined, ctx)
    if (row === undefined || row === 'forbidden') return ''
    const at = row.at('starttime').word() ?? row.at('starttimelocal').word()
    return at === undefined ? '' : `up since ${at}`
  }

  async #node(ctx: CallContext): Promise<string> {
    if (this.#cluster === true) return 'cluster'
    const row = await this.#row('config', 'hanode', '0', ctx)
    const address = row === 'forbidden' ? undefined : row?.at('ipaddress').word()
    return address === undefined || address === '' ? new URL(this.#session.url).host : address
  }

  async #isCluster(ctx: CallContext): Promise<boolean | 'forbidden'> {
    const row = await this.#row('config', 'clusterinstance', undefined, ctx)
    return row === 'forbidden' ? row : row?.at('clid').word() !== undefined
  }

  /** The first row; undefined where this build does not know the type. */
  async #row(
    tree: 'config' | 'stat',
    type: string,
    name: string | undefined,
    ctx: CallContext,
  ): Promise<Row | 'forbidden' | undefined> {
    try {
      return rowsOf(await this.#session.get(pathOf(tree, type, name), ctx), type)[0]
    } catch (error) {
      if (isDrainableError(error, 'FORBIDDEN')) return 'forbidden'
      if (isDrainableError(error, 'REJECTED', 'NOT_FOUND')) return undefined
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
