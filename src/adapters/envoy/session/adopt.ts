import { DrainableError } from '../../../provider/error.js'
import type { JsonObject } from '../../../kit/json.js'

/** Nobody holds any set. */
export function nothingToAdopt(proxies: readonly string[]): DrainableError {
  return new DrainableError(
    'REJECTED',
    `${proxies.join(', ')}: no endpoint set to adopt, nothing is published: a fresh fleet needs initial on the sink`,
    { provider: 'envoy' },
  )
}

/** One list of sets from several proxies: the same everywhere, or refused. */
export function agreed(
  dumps: readonly { name: string; sets: readonly JsonObject[] }[],
): JsonObject[] {
  const sets = new Map<string, { text: string; from: string; set: JsonObject }>()
  for (const { name, sets: found } of dumps) {
    for (const set of found) {
      const named = set['cluster_name']
      const cluster = typeof named === 'string' ? named : ''
      const text = JSON.stringify(set)
      const known = sets.get(cluster)
      if (known !== undefined && known.text !== text) {
        throw new DrainableError(
          'CONFLICT',
          `${known.from} and ${name} hold different endpoint sets '${cluster}', nothing is adopted: bring them together first, or give initial on the sink`,
          { provider: 'envoy' },
        )
      }
      sets.set(cluster, { text, from: name, set })
    }
  }
  return [...sets.values()].map(({ set }) => set)
}
