import type { CallContext, MaintEffect, MemberRef } from '../../../provider/contract.js'
import { type FileServer, type HaproxyFile, type Marks, parseRaw } from '../codec/raw.js'
import { nameOf } from '../codec/replies.js'
import type { DataplaneApi } from '../session/session.js'
import type { RuntimeView } from './read.js'

/** What the configuration says about one server; what is not known is never read as gentle. */
export interface Configured extends Marks {
  /** Not in the file at all (`run time`); it can't be told (`unknown`), or not just now (`unread`). */
  readonly place: FileServer['place'] | 'run time' | 'unknown' | 'unread'
  readonly maint: MaintEffect
  readonly cutsBackups: boolean | 'unknown'
  readonly checked: boolean | 'unknown'
  readonly named: boolean | 'unknown'
}

const UNKNOWN: Configured = {
  maint: 'unknown',
  cutsBackups: 'unknown',
  place: 'unknown',
  checked: 'unknown',
  named: 'unknown',
  weight: null,
  maintenance: null,
}

/**
 * HAProxy's `hard-stop-after` in the configuration. It is held against what the operator says, and proves nothing: a
 * process lives by the value that it was started with, which this API does not tell (2.9 with HAProxy 2.6, 3.2 and 3.4).
 * `unknown`: the file is kept from this user. `unread`: it could not be read just now.
 */
export type HardStop = HaproxyFile['hardStop'] | 'unread'

/** The configuration at the time of a look. */
export interface ConfiguredAll {
  readonly hardStop: HardStop
  of(ref: MemberRef): Configured
}

/** `withheld`: kept from this user. `unread`: it could not be read just now. */
type Read = HaproxyFile | 'withheld' | 'unread'

/** So this API says that something is kept from this user, or that it has no such path. */
const WITHHELD: ReadonlySet<number> = new Set([403, 404, 405, 501])

/**
 * HAProxy's configuration file. It is read once, and again when the version that every reply carries has changed, or
 * HAProxy was reloaded, as by a person who has edited the file.
 */
export class Configuration {
  readonly #api: DataplaneApi
  #last: { readonly stamp: string; readonly file: Exclude<Read, 'unread'> } | undefined

  constructor(api: DataplaneApi) {
    this.#api = api
  }

  /** What it says at the time of a look. */
  async at({ configVersion, info }: RuntimeView, ctx: CallContext): Promise<ConfiguredAll> {
    const stamp = `${configVersion ?? ''}|${nameOf(info)}`
    const file = this.#last?.stamp === stamp ? this.#last.file : await this.file(ctx)
    this.#last = file === 'unread' ? undefined : { stamp, file }
    if (file === 'unread') return { hardStop: file, of: () => ({ ...UNKNOWN, place: file }) }
    if (file === 'withheld') return { hardStop: 'unknown', of: () => UNKNOWN }
    const runTime: Configured = { ...UNKNOWN, place: 'run time', named: false }
    return {
      hardStop: file.hardStop,
      of: ({ pool, member }) => file.server(pool, member) ?? runTime,
    }
  }

  /** What it says about one server, at the time of a look. */
  async of(ref: MemberRef, view: RuntimeView, ctx: CallContext): Promise<Configured> {
    return (await this.at(view, ctx)).of(ref)
  }

  /** The file as it is now. */
  async file(ctx: CallContext): Promise<Read> {
    const { paths } = await this.#api.served(ctx)
    const reply = await this.#api.get(paths.configRaw, ctx)
    if (WITHHELD.has(reply.status)) return 'withheld'
    return (reply.status === 200 ? parseRaw(reply.text) : undefined) ?? 'unread'
  }

  /** Forgets what was read: it is about to be written. */
  forget(): void {
    this.#last = undefined
  }
}
