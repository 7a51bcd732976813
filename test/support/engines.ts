/** The real load balancers a test can run: what `npm run engines` installed, or the environment names. */
import { readEngines } from '../../scripts/engines/manifest.ts'
import type { Engine, EngineKind } from '../../scripts/engines/manifest.ts'

export type { Engine, EngineKind }

const said = new Set<EngineKind>()

/**
 * Every installed version of an engine, oldest first.
 *
 * With none installed this is an error under `CI`. Elsewhere it is said once on standard error, and the list is empty:
 * `describe.skipIf(engines('haproxy').length === 0)` or `describe.each(engines('haproxy'))`.
 */
export function engines(kind: EngineKind, manifest?: string): readonly Engine[] {
  const found = readEngines(kind, manifest)
  if (found.length > 0) return found
  const missing = `no ${kind} to test with: run "npm run engines${kind === 'kube' ? ' -- kube' : ''}"`
  if (isCi() && kind !== 'kube') throw new Error(missing)
  if (!said.has(kind)) {
    said.add(kind)
    process.stderr.write(`SKIPPED: ${missing}\n`)
  }
  return []
}

/** One version of an engine, by its series (`3.0`), the same way. */
export function engineOf(kind: EngineKind, series: string): Engine | undefined {
  const found = engines(kind).find((item) => item.series === series)
  if (found === undefined && isCi()) throw new Error(`no ${kind} ${series} to test with`)
  return found
}

function isCi(): boolean {
  const value = process.env['CI']
  return value !== undefined && value !== '' && value !== 'false'
}
