import type { CallContext, MaintEffect, MemberRef } from '../../../provider/contract.js'
import { isDrainableError } from '../../../provider/error.js'
import { type FileText, parseFile } from '../codec/configuration.js'
import { nameOf } from '../codec/replies.js'
import type { DataplaneApi } from '../session/session.js'
import type { RuntimeView } from './read.js'

/** What the configuration says about one server. */
export interface Configured {
  /** What maint does to its established work. */
  readonly maint: MaintEffect
  /** Whether leaving maint cuts the sessions on the backend's backup servers. */
  readonly cutsBackups: boolean | 'unknown'
  /**
   * Where it stands: in a line that this API can write; in a `listen` section or a `server-template`, which it can't; not
   * in the file at all (`run time`). `unknown`: the file is kept from this user; `unread`: it can't be read just now.
   */
  readonly place: 'line' | 'listen' | 'template' | 'run time' | 'unknown' | 'unread'
  /** Whether HAProxy checks its health, by a check or an agent, its own or that of a server that it tracks. */
  readonly checked: boolean | 'unknown'
  /** Whether its address comes from a name: then it can move to another server. */
  readonly named: boolean | 'unknown'
  readonly weight: number | null
  readonly maintenance: 'enabled' | null
}

const UNKNOWN = {
  maint: 'unknown',
  cutsBackups: 'unknown',
  checked: 'unknown',
  named: 'unknown',
  weight: null,
  maintenance: null,
} as const

/** The configuration at the time of a look. */
export interface ConfigView {
  /**
   * How long a replaced process lives, as the file says. It is held against what the operator says, and proves nothing: a
   * process lives by the value that it was started with, which this API does not tell (2.9 with HAProxy 2.6, 3.2 and 3.4).
   */
  readonly hardStop: HardStop
  of(ref: MemberRef): Configured
}

/** `unknown`: the file is kept from this user, or it has another form. `unread`: it can't be read just now. */
export type HardStop = FileText['hardStop'] | 'unread'

/** So this API says that the file is kept from this user, or that it has no such path. */
const WITHHELD: ReadonlySet<number> = new Set([403, 404, 405, 501])

/**
 * HAProxy's configuration, as the file has it. Read again when the version that every reply carries has changed, or
 * HAProxy was reloaded: then it may say something else. What can't be read is "not known", and never an error of a look.
 */
export class Configuration {
  readonly #api: DataplaneApi
  #known: { readonly stamp: string; readonly view: ConfigView } | undefined

  constructor(api: DataplaneApi) {
    this.#api = api
  }

  /** What it says at the time of a look. */
  async at(look: RuntimeView, ctx: CallContext): Promise<ConfigView> {
    const stamp = `${look.configVersion ?? ''}|${nameOf(look.info)}`
    if (this.#known?.stamp === stamp) return this.#known.view
    const file = await this.#read(ctx)
    if (file === 'unread') return nothing('unread')
    const view = file === 'unknown' ? nothing('unknown') : toView(file)
    this.#known = { stamp, view }
    return view
  }

  /** What it says about one server. */
  async of(ref: MemberRef, look: RuntimeView, ctx: CallContext): Promise<Configured> {
    return (await this.at(look, ctx)).of(ref)
  }

  /** What it says about one server now. Right after a reload that failed the version is that of before. */
  async now({ pool, member }: MemberRef, ctx: CallContext): Promise<Configured['place']> {
    this.#known = undefined
    const file = await this.#read(ctx)
    return typeof file === 'string' ? file : (file.server(pool, member)?.place ?? 'run time')
  }

  async #read(ctx: CallContext): Promise<FileText | 'unknown' | 'unread'> {
    try {
      const { paths } = await this.#api.served(ctx)
      const { status, text } = await this.#api.get(paths.configRaw, ctx)
      if (status !== 200) return WITHHELD.has(status) ? 'unknown' : 'unread'
      return parseFile(text) ?? 'unread'
    } catch (error) {
      ctx.signal.throwIfAborted()
      if (!isDrainableError(error)) throw error
      return 'unread'
    }
  }
}

function toView({ hardStop, server }: FileText): ConfigView {
  const of = ({ pool, member }: MemberRef): Configured => {
    const found = server(pool, member)
    if (found === undefined) return { ...UNKNOWN, place: 'run time', named: false }
    const { cuts, ...said } = found
    return { ...said, maint: cuts ? 'cuts' : 'gentle' }
  }
  return { hardStop, of }
}

function nothing(place: 'unknown' | 'unread'): ConfigView {
  return { hardStop: place, of: () => ({ ...UNKNOWN, place }) }
}
