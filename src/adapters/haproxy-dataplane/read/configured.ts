import { caught } from '../../../kit/errors.js'
import type { CallContext, MemberRef } from '../../../provider/contract.js'
import { type Configured, type FileText, parseFile, untold } from '../codec/configuration.js'
import { nameOf } from '../codec/replies.js'
import type { DataplaneApi } from '../session/session.js'
import type { RuntimeView } from './read.js'

/** The configuration at the time of a look. */
export interface ConfigView {
  /**
   * How long a replaced process lives, as the file says. It is held against what the operator says, and proves nothing: a
   * process lives by the value that it was started with, which this API does not tell (2.9 with HAProxy 2.6, 3.2 and 3.4).
   */
  readonly hardStop: HardStop
  readonly server: (ref: MemberRef) => Configured
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
    const view = await this.read(ctx)
    this.#known = view.hardStop === 'unread' ? undefined : { stamp, view }
    return view
  }

  /** What it says now. Right after a reload that failed the version is that of before. */
  async read(ctx: CallContext): Promise<ConfigView> {
    this.#known = undefined
    const ask = async (): Promise<ConfigView> => {
      const { paths } = await this.#api.served(ctx)
      const { status, text } = await this.#api.get(paths.configRaw, ctx)
      if (status === 200) return parseFile(text) ?? nothing('unread')
      return nothing(WITHHELD.has(status) ? 'unknown' : 'unread')
    }
    return caught(ctx, ask, () => nothing('unread'))
  }
}

function nothing(place: 'unknown' | 'unread'): ConfigView {
  return { hardStop: place, server: () => untold(place) }
}
