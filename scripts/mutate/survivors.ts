import type { Mutant } from './mutants.ts'

/** Why mutants that survive change nothing that a test could see. */
export interface Explanation {
  /** Empty: nobody has said it yet. */
  readonly why: string
  /** Below src/core/machine. */
  readonly file: string
  /** What is changed into what. */
  readonly mutants: readonly (readonly [from: string, to: string])[]
}

function keyOf(file: string, from: string, to: string): string {
  return `${file}\n${from}\n${to}`
}

function nameOf({ file }: Mutant): string {
  return file.replace('src/core/machine/', '')
}

/** Survivors with and without an explanation, and explanations of what does not survive any more. */
export function explainSurvivors(
  survivors: readonly Mutant[],
  known: readonly Explanation[],
  only: string,
): {
  readonly explained: readonly Mutant[]
  readonly unexplained: readonly Mutant[]
  readonly stale: readonly { readonly file: string; readonly from: string; readonly to: string }[]
} {
  const said = known.filter(({ why }) => why !== '')
  const entries = said.flatMap(({ file, mutants }) =>
    mutants.map(([from, to]) => ({ file, from, to })),
  )
  const keys = new Set(entries.map(({ file, from, to }) => keyOf(file, from, to)))
  const found = new Set(survivors.map((mutant) => keyOf(nameOf(mutant), mutant.from, mutant.to)))
  const isKnown = (mutant: Mutant): boolean =>
    keys.has(keyOf(nameOf(mutant), mutant.from, mutant.to))
  return {
    explained: survivors.filter(isKnown),
    unexplained: survivors.filter((mutant) => !isKnown(mutant)),
    stale: entries.filter(
      ({ file, from, to }) =>
        `src/core/machine/${file}`.includes(only) && !found.has(keyOf(file, from, to)),
    ),
  }
}

/** The list with the survivors of a whole run: what is known of them stays said. */
export function update(
  survivors: readonly Mutant[],
  known: readonly Explanation[],
): readonly Explanation[] {
  const left = new Map(survivors.map((one) => [keyOf(nameOf(one), one.from, one.to), one]))
  const kept = known.map((entry) => ({
    ...entry,
    mutants: entry.mutants.filter(([from, to]) => left.delete(keyOf(entry.file, from, to))),
  }))
  const news = [...left.values()].map((one) => ({
    why: '',
    file: nameOf(one),
    mutants: [[one.from, one.to] as const],
  }))
  return [...kept.filter(({ mutants }) => mutants.length > 0), ...news]
}
