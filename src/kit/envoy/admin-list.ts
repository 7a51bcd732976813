/** The admin addresses that a caller gives, for the adapter of Envoy's endpoints and for that of its listeners. */
import * as z from 'zod/mini'
import { askOption } from '../../provider/abort.js'
import { DrainableError, isDrainableError, wordsOf } from '../../provider/error.js'
import { parseAdminAddress, type AdminAddress } from './admin.js'

/** One address, as an option. */
export const adminAddress = z.string().check(
  z.superRefine((value, ctx) => {
    try {
      parseAdminAddress(value)
    } catch (error) {
      const said = isDrainableError(error)
        ? error.message.replace(/^admin: /, '')
        : 'expected a URL'
      ctx.addIssue({ code: 'custom', message: `${said}; or unix:/path/of/the/socket` })
    }
  }),
)

/** Who asks, for errors. */
interface Asker {
  readonly provider: string
  /** The factory, such as `envoy()`. */
  readonly subject: string
}

/** The addresses of one look after another: those of a list, or what a function returns for each. */
export class AdminList {
  readonly #asker: Asker
  readonly #admin: readonly string[] | (() => Promise<readonly string[]>)
  #last: readonly AdminAddress[] = []

  constructor(admin: readonly string[] | (() => Promise<readonly string[]>), asker: Asker) {
    this.#asker = asker
    this.#admin = admin
  }

  /** As they were at the last look; none before the first. */
  get last(): readonly AdminAddress[] {
    return this.#last
  }

  /** As they are now. @throws where none are known and the function fails */
  async now(signal: AbortSignal): Promise<readonly AdminAddress[]> {
    const found = await this.#ask(signal)
    // One that is empty all at once is a failed lookup more likely than the end of everything.
    if (found !== undefined && found.length > 0) this.#last = found.map(parseAdminAddress)
    return this.#last
  }

  /** Undefined: it failed. An old list is safer than none then: no Envoy is dropped because a lookup failed. */
  async #ask(signal: AbortSignal): Promise<readonly string[] | undefined> {
    if (typeof this.#admin !== 'function') return this.#admin
    try {
      const found: unknown = await askOption('admin', this.#admin, { signal })
      if (Array.isArray(found)) return found as readonly string[]
      throw new TypeError('expected a list of addresses')
    } catch (cause) {
      signal.throwIfAborted()
      if (this.#last.length > 0) return undefined
      if (isDrainableError(cause)) throw cause
      const { provider, subject } = this.#asker
      const words = `${subject}: the admin function failed: ${wordsOf(cause)}`
      throw new DrainableError('UNREACHABLE', words, { provider, cause })
    }
  }
}
