import { briefly } from '../../../kit/retry.js'
import type { CallContext } from '../../../provider/contract.js'
import { quote } from '../../../provider/quote.js'
import type { Settings } from '../options.js'
import type { Device } from '../session/device.js'

/** How long the device may take to tell a role that nothing depends on, in milliseconds. */
const LIMIT = 2_000
/** Roles that change no member and no node. */
const READERS = new Set(['guest', 'auditor', 'no-access'])

/**
 * The role of our user, so that one that is too low is named before anything is changed. Users from LDAP,
 * RADIUS or TACACS+ are not listed, and not every user may look: then nothing is said, and the device has
 * the last word.
 */
export class Rights {
  readonly #settings: Settings
  #roles: ReadonlyMap<string, string> = new Map()
  #asked = false

  constructor(settings: Settings) {
    this.#settings = settings
  }

  /** Asks once. */
  async read(device: Device, ctx: CallContext): Promise<void> {
    if (this.#asked) return
    this.#asked = true
    const path = `/mgmt/tm/auth/user/${encodeURIComponent(this.#settings.username)}`
    const told = await briefly(ctx, LIMIT, (one) => this.#ask(device, path, one))
    this.#roles = told ?? this.#roles
  }

  async #ask(
    { session }: Device,
    path: string,
    ctx: CallContext,
  ): Promise<ReadonlyMap<string, string>> {
    const meaning = await session.ask({ method: 'GET', path, patient: false }, ctx)
    if (meaning.kind !== 'ok') return new Map()
    const rows = session.value(meaning, `GET ${path}`).at('partitionAccess').rows()
    return new Map(
      rows.flatMap((row) => {
        const [name, role] = [row.at('name').text(), row.at('role').text()]
        return name === undefined || role === undefined ? [] : [[name, role] as const]
      }),
    )
  }

  #roleOn(partition: string): string | undefined {
    return this.#roles.get(partition) ?? this.#roles.get('all-partitions')
  }

  /** What is missing on a partition; nothing where the device does not tell. */
  missing(partition: string): readonly string[] {
    const role = this.#roleOn(partition)
    const user = `the user ${this.#settings.username}`
    if (this.#roles.size === 0) return []
    if (role === undefined || READERS.has(role)) {
      const has = role === undefined ? 'no role' : `the role ${role}`
      return [`${user} has ${has} on ${quote(partition)}, a change needs at least operator`]
    }
    const { save, configSync, persistence } = this.#settings
    const asked = [
      ...(save ? ['save'] : []),
      ...(configSync === undefined ? [] : ['configSync']),
      ...(persistence === undefined ? [] : ["persistence: 'forget'"]),
    ]
    if (role !== 'operator' || asked.length === 0) return []
    return [
      `${user} has the role operator on ${partition}: ${asked.join(', ')} ${asked.length === 1 ? 'needs' : 'need'} a Resource Administrator or Administrator`,
    ]
  }

  /** The limits on every partition that the user has a role on: for a plan, whatever it is about. */
  get everywhere(): readonly string[] {
    return [...this.#roles.keys()].flatMap((partition) => this.limits(partition))
  }

  /** What a role allows no more of than a drain; nothing where it allows all, or it is not known. */
  limits(partition: string): readonly string[] {
    if (this.#roleOn(partition) !== 'operator') return []
    return [
      `the role operator on ${partition} drains and opens; to cut connections (onTimeout: 'terminate') needs a Resource Administrator or Administrator, to remove members a Manager`,
    ]
  }
}
