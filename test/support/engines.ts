/** The real load balancers a test can run: what `npm run engines` installed, or the environment names. */
import { test } from 'vitest'
import { readEngines } from '../../scripts/engines/manifest.ts'
import type { Engine, EngineKind } from '../../scripts/engines/manifest.ts'

export type { Engine, EngineKind }

const said = new Set<EngineKind>()

/**
 * Every installed version of an engine, oldest first, for `describe.each(engines('haproxy'))` at the head of a file.
 *
 * With none installed this is an error under `CI`. Elsewhere it is said once on standard error, the list is empty, and a
 * skipped test stands for those that were not run.
 */
export function engines(kind: EngineKind): readonly Engine[] {
  const found = findEngines(kind)
  if (found.length > 0) return found
  const missing = sayMissing(kind)
  if (!said.has(kind)) {
    said.add(kind)
    process.stderr.write(`SKIPPED: ${missing}\n`)
  }
  if (process.env['VITEST'] !== undefined) test.skip(missing) // scripts ask too
  return []
}

/** What is installed; with nothing, an error under `CI`. */
export function findEngines(kind: EngineKind, manifest?: string): readonly Engine[] {
  const found = readEngines(kind, manifest)
  if (found.length === 0 && isCi() && kind !== 'kube') throw new Error(sayMissing(kind))
  return found
}

/** One version of an engine, by its series (`3.0`), the same way. */
export function engineOf(kind: EngineKind, series: string): Engine | undefined {
  const found = findEngines(kind).find((item) => item.series === series)
  if (found === undefined && isCi()) throw new Error(`no ${kind} ${series} to test with`)
  return found
}

function sayMissing(kind: EngineKind): string {
  return `no ${kind} to test with: run "npm run engines${kind === 'kube' ? ' -- kube' : ''}"`
}

function isCi(): boolean {
  const value = process.env['CI']
  return value !== undefined && value !== '' && value !== 'false'
}
