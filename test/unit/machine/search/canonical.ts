/**
 * One number for all states that behave alike: every moment is taken relative to now, texts and proofs
 * are left out. Fields that are not known here are taken as they are: a new one makes more states, and
 * never hides one. 53 bits: a million states collide with a chance of 1 in 20,000.
 */
export function canonical(value: unknown, now: number): number {
  const digest = new Digest(now)
  digest.take(value, false)
  return digest.number
}

/** What is done with a field: a moment by the run's clock, or nothing that decides anything. */
const FIELDS: ReadonlyMap<string, 'moment' | 'silent'> = new Map([
  ...[
    'askedAt',
    'at',
    'cameAt',
    'confirmedAt',
    'damagedAt',
    'deadline',
    'effectiveSince',
    'lateUntil',
    'lived',
    'livedBefore',
    'livedFrom',
    'lostAt',
    'notBefore',
    'quietFrom',
    'sampledAt',
    'sealedAt',
    'since',
    'startedAt',
    'steadySince',
    'takenAt',
    'terminateUntil',
    'until',
    'yieldAt',
  ].map((name) => [name, 'moment'] as const),
  ...['message', 'now', 'ref', 'said', 'text'].map((name) => [name, 'silent'] as const),
])

const HASHES = new Map<string, number>()

/** Strings of a search are few: each is hashed once. */
function hashOf(text: string): number {
  let hash = HASHES.get(text)
  if (hash !== undefined) return hash
  hash = 0x811c9dc5
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 16_777_619)
  HASHES.set(text, hash)
  return hash
}

interface Field {
  readonly hash: number
  readonly kind: 'moment' | 'silent' | undefined
}

const KNOWN = new Map<string, Field>()

function fieldOf(name: string): Field {
  let field = KNOWN.get(name)
  if (field === undefined) {
    field = { hash: hashOf(name), kind: FIELDS.get(name) }
    KNOWN.set(name, field)
  }
  return field
}

const OPEN = 0x7b
const CLOSE = 0x7d

class Digest {
  readonly #now: number
  #one = 0xdeadbeef
  #two = 0x41c6ce57

  constructor(now: number) {
    this.#now = now
  }

  get number(): number {
    return 4_294_967_296 * (2_097_151 & this.#two) + (this.#one >>> 0)
  }

  #mix(code: number): void {
    this.#one = Math.imul(this.#one ^ code, 2_654_435_761)
    this.#one ^= this.#one >>> 15
    this.#two = Math.imul(this.#two ^ code, 1_597_334_677)
    this.#two ^= this.#two >>> 13
  }

  take(value: unknown, moment: boolean): void {
    switch (typeof value) {
      case 'number':
        this.#mix(moment ? value - this.#now : value)
        return
      case 'string':
        // Moments in words are of what was said, and decide nothing.
        this.#mix(moment ? 1 : hashOf(value))
        return
      case 'boolean':
        this.#mix(value ? 3 : 2)
        return
      case 'object':
        if (value === null) this.#mix(4)
        else this.#takeObject(value)
        return
      default:
        this.#mix(5)
    }
  }

  #takeObject(value: object): void {
    this.#mix(OPEN)
    if (value instanceof Map) this.#takeMap(value as ReadonlyMap<string, unknown>)
    else if (Array.isArray(value)) for (const entry of value) this.take(entry, false)
    else if (value instanceof Error)
      this.#mix(hashOf('code' in value ? String(value.code) : 'error'))
    else if ('quietSince' in value)
      this.#mix(6) // a proof: what it rests on is in the state
    else this.#takeFields(value)
    this.#mix(CLOSE)
  }

  #takeMap(map: ReadonlyMap<string, unknown>): void {
    for (const key of [...map.keys()].sort()) {
      this.#mix(hashOf(key))
      this.take(map.get(key), false)
    }
  }

  #takeFields(value: object): void {
    for (const key in value) {
      const { hash, kind } = fieldOf(key)
      if (kind === 'silent') continue
      this.#mix(hash)
      this.take((value as Record<string, unknown>)[key], kind === 'moment')
    }
  }
}
