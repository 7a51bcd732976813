/** Members as a history names them: `a` is in the pool `web`, `api/a` in another pool, `east:a` on another balancer. */
import type { MemberRef } from 'drainable'

const POOL = 'web'

/** The member of a name. */
export function refOf(name: string): MemberRef {
  const [, balancer, pool = POOL, member] = /^(?:(\w+):)?(?:(\w+)\/)?(\w+)$/.exec(name) ?? []
  if (member === undefined) throw new Error(`'${name}' is no name of a member`)
  return { pool, member, ...(balancer === undefined ? {} : { balancer }) }
}

/** The name of a member. */
export function nameOf({ pool, member, balancer }: MemberRef): string {
  const own = pool === POOL ? member : `${pool}/${member}`
  return balancer === undefined ? own : `${balancer}:${own}`
}

/** Words in pairs, `timeout 30s keepReady 1`; those of `flags` stand alone. */
export function options(
  words: readonly string[],
  flags: readonly string[] = [],
): Record<string, string | number | boolean> {
  const found: Record<string, string | number | boolean> = {}
  for (let i = 0; i < words.length; i += 1) {
    const key = words[i]!
    if (flags.includes(key)) found[key] = true
    else {
      i += 1
      const value = words[i]
      if (value === undefined) throw new Error(`'${key}' has no value`)
      found[key] = valueOf(value)
    }
  }
  return found
}

/** A word of a history as the value that it stands for. */
export function valueOf(word: string): string | number | boolean {
  if (word === 'yes' || word === 'true') return true
  if (word === 'no' || word === 'false') return false
  return /^(\d+|Infinity)$/.test(word) ? Number(word) : word
}

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const

/** Milliseconds of `5s`. */
export function milliseconds(word: string): number {
  const [, number, unit] = /^(\d+)(ms|s|m|h)$/.exec(word) ?? []
  if (number === undefined) throw new Error(`'${word}' is no duration: write 500ms or 5s`)
  return Number(number) * UNITS[unit as keyof typeof UNITS]
}
