import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Mutant } from './mutants.ts'
import { keyOf } from './survivors.ts'

/** Which test noticed which mutant the last time it was run; kept beside the installed packages. */
export class Memory {
  readonly #path: string
  /** Null: none noticed it. Mutants that read alike share an entry: that of the one that survived. */
  readonly #killers: Map<string, string | null>

  constructor(path: string) {
    this.#path = path
    const known = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as object) : {}
    this.#killers = new Map(Object.entries(known) as [string, string | null][])
  }

  killerOf(mutant: Mutant): string | null {
    return this.#killers.get(keyOf(mutant)) ?? null
  }

  isKilled(mutant: Mutant): boolean {
    return this.killerOf(mutant) !== null
  }

  keep(killers: ReadonlyMap<Mutant, string | null>): void {
    const news = new Map<string, string | null>()
    for (const [mutant, killer] of killers)
      if (news.get(keyOf(mutant)) !== null) news.set(keyOf(mutant), killer)
    for (const [key, killer] of news) this.#killers.set(key, killer)
    mkdirSync(dirname(this.#path), { recursive: true })
    writeFileSync(this.#path, JSON.stringify(Object.fromEntries(this.#killers)))
  }
}
