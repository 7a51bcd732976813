import { randomUUID } from 'node:crypto'
import { HaproxyConfig } from './haproxy-config.js'
import { Refusal, failure, refuse } from './answer.js'

/** A transaction as the API prints it. */
interface Transaction {
  readonly id: string
  readonly version: number
  config: HaproxyConfig
  status: 'in_progress' | 'failed' | 'outdated'
}

/**
 * How long the API tells what it had in memory before it reads a file again that was rolled back, in
 * milliseconds: it waits for the file system to tell it. Measured 20 to 100 on 2.9.25, 3.0.21 and 3.2.13, longer on a busy machine.
 */
const READ_AGAIN_AFTER = 400

/** What one write is made under: a version, or a transaction. */
export type Under = { readonly version: number } | { readonly transaction: Transaction }

/** The configuration file as the API keeps it: text, version, transactions. */
export class ConfigStore {
  /** As the API has it in memory. */
  #config: HaproxyConfig
  #file: string
  #rereading: NodeJS.Timeout | undefined
  /** As it was when HAProxy was last reloaded through the API, or when that was started. */
  #good: { readonly text: string; readonly version: number; readonly hashed: boolean }
  /** Whether the API wrote the file, with its hash. */
  #hashed = false
  #version: number
  readonly #maxTransactions: number
  readonly #transactions = new Map<string, Transaction>()
  readonly #save: (text: string) => void

  constructor(
    config: HaproxyConfig,
    version: number,
    maxTransactions: number,
    save: (text: string) => void,
  ) {
    this.#config = config
    this.#file = config.text
    this.#good = { text: config.text, version, hashed: false }
    this.#version = version
    this.#maxTransactions = maxTransactions
    this.#save = save
  }

  get version(): number {
    return this.#version
  }

  get config(): HaproxyConfig {
    return this.#config
  }

  /** The file. */
  get text(): string {
    return this.#file
  }

  /** The configuration that a read sees: that of its transaction, if it names one. */
  seen(query: URLSearchParams): HaproxyConfig {
    const id = query.get('transaction_id')
    return id === null ? this.#config : this.#open(id).config
  }

  /** What a write is made under, from its query. */
  under(query: URLSearchParams): Under {
    const version = query.get('version')
    const id = query.get('transaction_id')
    if (id !== null && query.get('force_reload') === 'true') {
      refuse(400, 'Both force_reload and transaction specified, specify only one')
    }
    if (id !== null && version !== null) {
      throw new Refusal({
        ...failure(400, 'both version and transaction specified, specify only one'),
        configVersion: 0,
      })
    }
    if (id !== null) return { transaction: this.#open(id) }
    if (version === null) {
      refuse(
        400,
        'version or transaction not specified: version or transaction not specified, specify only one',
      )
    }
    this.#match(Number(version))
    return { version: Number(version) }
  }

  /** The configuration that a write starts from. */
  base(under: Under): HaproxyConfig {
    return 'transaction' in under ? under.transaction.config : this.#config
  }

  /** Takes a changed configuration. Outside a transaction it is checked, saved and gets the next version. */
  write(under: Under, next: HaproxyConfig): void {
    if ('transaction' in under) {
      under.transaction.config = next
      return
    }
    const implicit = {
      id: randomUUID(),
      version: this.#version,
      config: next,
      status: 'failed',
    } as const
    const complaint = next.complaint()
    if (complaint !== undefined) {
      this.#transactions.set(implicit.id, { ...implicit })
      refuse(400, validationError(implicit.id, complaint))
    }
    this.#take(next)
  }

  begin(version: string | null, chi: boolean): Record<string, unknown> {
    if (version === null) {
      if (chi) refuse(400, 'Query argument version is required, but not found')
      refuse(422, 'version in query is required', 602)
    }
    this.#match(Number(version))
    const open = [...this.#transactions.values()].filter((t) => t.status === 'in_progress')
    if (open.length >= this.#maxTransactions) {
      refuse(
        429,
        `cannot start a new transaction, reached the maximum amount of ${this.#maxTransactions} active transactions available`,
      )
    }
    const id = randomUUID()
    const transaction: Transaction = {
      id,
      version: this.#version,
      config: this.#config,
      status: 'in_progress',
    }
    this.#transactions.set(id, transaction)
    return print(transaction)
  }

  transactions(): Record<string, unknown>[] {
    return [...this.#transactions.values()].map(print)
  }

  transaction(id: string): Record<string, unknown> {
    return print(this.#transactions.get(id) ?? missing(id))
  }

  discard(id: string): void {
    if (!this.#transactions.delete(id)) {
      refuse(404, `transaction does not exist: transaction file ${id} does not exist`)
    }
  }

  commit(id: string): Record<string, unknown> {
    const transaction = this.#transactions.get(id) ?? missing(id)
    if (transaction.status !== 'in_progress') {
      refuse(406, `transaction ${id} is ${transaction.status} and cannot be committed`)
    }
    const complaint = transaction.config.complaint()
    if (complaint !== undefined) {
      transaction.status = 'failed'
      refuse(400, validationError(id, complaint))
    }
    this.#transactions.delete(id)
    this.#take(transaction.config)
    return { _version: transaction.version, id, status: 'success' }
  }

  /** HAProxy runs with the present text. */
  keep(): void {
    this.#good = { text: this.#file, version: this.#version, hashed: this.#hashed }
  }

  /**
   * A reload was refused: the file is the last known good one again. One that was written by hand is read anew a
   * moment later, under the version after its own. Of one that the API wrote itself it takes no notice: it goes on
   * with what it has in memory (2.9.25, 3.0.21, 3.2.13, 3.4.2).
   */
  rollBack(): void {
    const { text, version, hashed } = this.#good
    this.#write(text, hashed)
    if (hashed) return
    this.#rereading = setTimeout(() => {
      this.#config = new HaproxyConfig(text)
      this.#version = version + 1
    }, READ_AGAIN_AFTER)
    this.#rereading.unref()
  }

  /** What is written from memory is what the file has then. */
  #write(text: string, hashed: boolean): void {
    clearTimeout(this.#rereading)
    this.#hashed = hashed
    this.#file = text
    this.#save(text)
  }

  /** The API starts again: what was open is lost. */
  restart(): void {
    this.#transactions.clear()
  }

  #take(next: HaproxyConfig): void {
    this.#config = next
    this.#version += 1
    for (const transaction of this.#transactions.values()) {
      if (transaction.status === 'in_progress') transaction.status = 'outdated'
    }
    this.#write(next.text, true)
  }

  #match(version: number): void {
    if (version === this.#version) return
    refuse(
      409,
      `version mismatch: version in configuration file is ${this.#version}, given version is ${version}`,
    )
  }

  #open(id: string): Transaction {
    const transaction = this.#transactions.get(id)
    if (transaction !== undefined) return transaction
    throw new Refusal({ ...failure(400, `transaction does not exist: ${id}`), configVersion: 0 })
  }
}

function print(transaction: Transaction): Record<string, unknown> {
  const { id, version, status } = transaction
  return status === 'in_progress' ? { _version: version, id, status } : { id, status }
}

function missing(id: string): never {
  refuse(404, `transaction does not exist: transaction ${id} does not exist`)
}

function validationError(id: string, complaint: string): string {
  return `validation error: exit status 1: err transactionId=${id} \nmsg="config [haproxy.cfg.${id}] ${complaint}"\nmsg="config Fatal errors found in configuration."`
}
