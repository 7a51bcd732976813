/** The real load balancers a test can run: what `npm run engines` installed, or the environment names. */
import { expect, test } from 'vitest'
import { catalog, usualEngines } from '../../scripts/engines/catalog.ts'
import { readEngines } from '../../scripts/engines/manifest.ts'
import type { Engine, EngineKind } from '../../scripts/engines/manifest.ts'
import { isCi, saySkipped } from './skipped.ts'

export type { Engine }

/**
 * Every installed version of an engine, oldest first, for `describe.each(engines('haproxy'))` at the head of a file; with
 * series only one for each: `engines('haproxy', '2.6', '3.2')`; the last stands for what is newer where it is not there.
 * A test that names no series is played on every version with `CI` set, and on the newest elsewhere.
 *
 * What `npm run engines` installs everywhere, or builds when asked for, and is missing is said on standard error. A test
 * stands for each, so that a file has one whatever is installed: it fails under `CI` and is skipped elsewhere.
 */
export function engines(kind: EngineKind, ...series: readonly string[]): readonly Engine[] {
  const all = catalog.filter((entry) => entry.kind === kind)
  const usual = all.filter(({ name }) => usualEngines.includes(name))
  const names = series.map((item) => `${kind}-${item}`)
  // One that is built only when asked for is still what its own tests need.
  const everything = usual.length === 0 ? all : usual
  const wanted = series.length === 0 ? everything : all.filter(({ name }) => names.includes(name))
  if (series.length > 0 && wanted.length < series.length) {
    throw new Error(`not all of ${names.join(', ')} are in scripts/engines/catalog.ts`)
  }
  const installed = readEngines(kind)
  reportMissing(
    wanted
      .filter((entry) => !entry.optional)
      .filter((entry) => !installed.some(({ version }) => entry.accepts(version)))
      .map((entry) => entry.name),
  )
  if (series.length === 0) return isCi() || !inTest() ? installed : installed.slice(-1)
  // The oldest that an entry accepts: `3.2` is 3.2, also where 3.4 is installed.
  const chosen = wanted.map((entry) => installed.find(({ version }) => entry.accepts(version)))
  return installed.filter((one) => chosen.includes(one))
}

/** Benchmarks and scripts ask too, and have no tests. */
function inTest(): boolean {
  return process.env['VITEST'] !== undefined
}

function reportMissing(names: readonly string[]): void {
  if (names.length === 0) return
  const asked = names.filter((name) => !usualEngines.includes(name))
  const command = ['npm run engines', ...asked].join(asked.length === 0 ? '' : ' -- ')
  const words = `no ${names.join(', no ')} to test with: run "${command}"`
  if (isCi() && !inTest()) throw new Error(words)
  if (!isCi()) saySkipped(words)
  if (!inTest()) return
  for (const name of names) {
    test.skipIf(!isCi())(`${name} is installed`, () => {
      expect.fail(words)
    })
  }
}
