import {
  AdminLink,
  parseAdminAddress,
  type AdminAddress,
  type Call,
} from '../../../kit/envoy/admin.js'
import { isDrainableError } from '../../../provider/error.js'

const PATHS = '/clusters, /stats, /server_info and /config_dump'
/** Milliseconds that an answer may take where the last look failed. */
const TIMEOUT_FAILING = 500

/** One proxy's admin API. */
export class AdminClient {
  readonly name: string
  readonly #address: AdminAddress
  readonly #open = new Set<AdminLink>()
  #failing = false

  constructor(address: string) {
    this.#address = parseAdminAddress(address)
    this.name = this.#address.name
  }

  /** Runs one look over a connection of its own. */
  async look<T>(call: Call, fn: (link: AdminLink) => Promise<T>): Promise<T> {
    const link = new AdminLink(this.#address, call, {
      provider: 'envoy',
      name: this.name,
      paths: PATHS,
      // One that failed is asked with less patience, so that a frozen one does not set the pace.
      ...(this.#failing ? { timeout: TIMEOUT_FAILING } : {}),
    })
    this.#open.add(link)
    try {
      const value = await fn(link)
      this.#failing = false
      return value
    } catch (error) {
      this.#failing = isDrainableError(error)
      throw error
    } finally {
      this.#open.delete(link)
      await link.close()
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map((link) => link.close()))
  }
}
