import type { Mutant } from './mutants.ts'

/** Why mutants of one line of code change nothing that a test could see. */
export interface Explanation {
  /** Empty: not said yet. */
  readonly why: string
  /** Below src/core/member. */
  readonly file: string
  /** The function, and the line of code in it. */
  readonly within: string
  readonly code: string
  /** What is changed into what; two that read alike are listed twice. */
  readonly mutants: readonly (readonly [from: string, to: string])[]
}

interface Entry {
  readonly why: string
  readonly place: Omit<Explanation, 'why' | 'mutants'>
  readonly change: readonly [from: string, to: string]
}

/** What is known of a run's survivors. */
export interface Judged {
  readonly explained: readonly Mutant[]
  readonly unexplained: readonly Mutant[]
  /** Explanations of what survives no more. */
  readonly stale: readonly { readonly file: string; readonly from: string; readonly to: string }[]
}

/** A mutant by its text, whatever its line number is. */
export function keyOf({ file, within, code, from, to }: Omit<Mutant, 'id' | 'line'>): string {
  return [nameOf(file), within, code, from, to].join('\n')
}

function nameOf(file: string): string {
  return file.replace('src/core/member/', '')
}

/**
 * Survivors with and without an explanation, and explanations of what does not survive any more.
 *
 * @param ran - whether a mutant of this key was to be run; one that was not is no news
 */
export function explainSurvivors(
  survivors: readonly Mutant[],
  known: readonly Explanation[],
  ran: (key: string) => boolean,
): Judged {
  const left = new Map<string, Entry[]>()
  for (const entry of entriesOf(known)) {
    if (entry.why === '') continue
    const key = entryKey(entry)
    left.set(key, [...(left.get(key) ?? []), entry])
  }
  const explained = survivors.filter((one) => left.get(keyOf(one))?.pop() !== undefined)
  const said = new Set(explained)
  return {
    explained,
    unexplained: survivors.filter((one) => !said.has(one)),
    stale: [...left].flatMap(([key, entries]) =>
      (ran(key) ? entries : []).map(({ place, change: [from, to] }) => ({
        file: place.file,
        from,
        to,
      })),
    ),
  }
}

/** The list with the survivors of a whole run: what is known of them stays said. */
export function update(
  survivors: readonly Mutant[],
  known: readonly Explanation[],
): readonly Explanation[] {
  const reasons = new Map<string, string[]>()
  for (const entry of entriesOf(known)) {
    const key = entryKey(entry)
    reasons.set(key, [...(reasons.get(key) ?? []), entry.why])
  }
  const list = new Map<string, Explanation>()
  for (const one of survivors) {
    const { within, code, from, to } = one
    const why = reasons.get(keyOf(one))?.shift() ?? ''
    const file = nameOf(one.file)
    const key = [why, file, within, code].join('\n')
    const mutants = [...(list.get(key)?.mutants ?? []), [from, to] as const]
    list.set(key, { why, file, within, code, mutants })
  }
  return [...list.values()]
}

function entriesOf(known: readonly Explanation[]): readonly Entry[] {
  return known.flatMap(({ why, mutants, ...place }) =>
    mutants.map((change) => ({ why, place, change })),
  )
}

function entryKey({ place, change: [from, to] }: Entry): string {
  return keyOf({ ...place, from, to })
}
