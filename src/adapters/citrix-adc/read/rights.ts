import { briefly } from '../../../kit/retry.js'
import type { CallContext } from '../../../provider/contract.js'
import { quote } from '../../../provider/quote.js'
import { isName, pathOf, rowsOf } from '../codec/nitro.js'
import type { Settings } from '../options.js'
import type { NitroSession } from '../session/session.js'

/** Policies of the appliance's own that change nothing. */
const READERS = /^(partition-)?read-only$/i
/** And those that enable and disable, and do no more. */
const OPERATORS = /^(partition-)?operator$/i
/** How long the appliance may take to tell what nothing depends on, in milliseconds. */
const LIMIT = 3_000
/** Groups whose policies are looked at. */
const GROUPS = 8

/**
 * The command policies of our user, so that one that may change nothing is named before anything is changed.
 * Only the appliance's own policies are judged: what another one allows stands in an expression. Users of
 * LDAP, RADIUS or TACACS+ are not listed, and not every user may look: then nothing is said, and the
 * appliance has the last word.
 */
export class Rights {
  readonly #settings: Settings
  #policies: readonly string[] = []
  #asked = false

  constructor(settings: Settings) {
    this.#settings = settings
  }

  /** Asks once, and waits no longer than a moment. */
  async read(session: NitroSession, ctx: CallContext): Promise<void> {
    if (this.#asked || !isName(this.#settings.username)) return
    this.#asked = true
    this.#policies = (await briefly(ctx, LIMIT, (one) => this.#ask(session, one))) ?? []
  }

  async #ask(session: NitroSession, ctx: CallContext): Promise<readonly string[]> {
    const { username } = this.#settings
    const words = async (type: string, name: string, key: string): Promise<readonly string[]> => {
      const rows = rowsOf(await session.get(pathOf('config', type, name), ctx), type)
      return rows.map((row) => row.at(key).neededText())
    }
    const own = await words('systemuser_systemcmdpolicy_binding', username, 'policyname')
    const groups = await words('systemuser_systemgroup_binding', username, 'groupname')
    // Of more groups than that it is not known what they allow.
    if (groups.length > GROUPS || !groups.every(isName)) return []
    const theirs = await Promise.all(
      groups.map((group) => words('systemgroup_systemcmdpolicy_binding', group, 'policyname')),
    )
    return [...own, ...theirs.flat()]
  }

  /** What is missing; nothing where the appliance does not tell. */
  get missing(): readonly string[] {
    if (this.#mayOnly(READERS)) {
      return [
        `${this.#user}: it can look but change nothing; bind a policy that allows enable and disable`,
      ]
    }
    const { save, persistence } = this.#settings
    const asked = [
      ...(save ? ['save'] : []),
      ...(persistence === 'forget' ? ["persistence: 'forget'"] : []),
    ]
    if (!this.#mayOnly(READERS, OPERATORS) || asked.length === 0) return []
    return [`${this.#user}: it can enable and disable, but ${asked.join(' and ')} needs more`]
  }

  /** What is allowed no more of than a drain, for a plan; nothing where the appliance does not tell. */
  get limits(): readonly string[] {
    if (this.#mayOnly(READERS) || !this.#mayOnly(READERS, OPERATORS)) return []
    return [`${this.#user}: it can enable and disable, but to add and to remove members needs more`]
  }

  #mayOnly(...known: readonly RegExp[]): boolean {
    const isKnown = (name: string): boolean => known.some((one) => one.test(name))
    return this.#policies.length > 0 && this.#policies.every(isKnown)
  }

  get #user(): string {
    const names = [...new Set(this.#policies)].map((name) => `'${quote(name, 60)}'`).join(', ')
    const policies = this.#policies.length === 1 ? 'policy' : 'policies'
    return `the user ${this.#settings.username} has the command ${policies} ${names} alone`
  }
}
