import type { Assignment } from '../codec/assignment.js'
import type { Published } from './sink.js'

/** A publication of a set of one kind. */
export type Publication<A> = Published & { readonly set: A }

/** The sets of a sink, each with its last publication. */
export class Publications<A extends Assignment> {
  readonly #sets = new Map<string, Publication<A>>()
  #seq = 0

  get(cluster: string): Publication<A> | undefined {
    return this.#sets.get(cluster)
  }

  all(): ReadonlyMap<string, Publication<A>> {
    return new Map(this.#sets)
  }

  put(set: A): Publication<A> {
    const published = { set, seq: ++this.#seq, version: set.version }
    this.#sets.set(set.cluster, published)
    return published
  }

  /** All sets, as another writer has them now: the publication of one that has not changed stands. */
  replace(sets: readonly A[]): ReadonlyMap<string, Publication<A>> {
    const names = new Set(sets.map(({ cluster }) => cluster))
    for (const name of this.#sets.keys()) if (!names.has(name)) this.#sets.delete(name)
    for (const set of sets) if (this.get(set.cluster)?.version !== set.version) this.put(set)
    return this.all()
  }
}
