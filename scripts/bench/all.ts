/** `npm run bench -- all`: runs the benchmarks of docs/benchmarks.md and writes the page. It takes about ten minutes. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { arch, cpus, loadavg, platform, release, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { FOLDER, type Table } from '../../bench/support/tables.ts'
import type { Results } from './page.ts'
import { readResults, writeBenchmarks } from './write.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** In the order of the page, with the table that each keeps. */
const PROGRAMS = [
  ['haproxy-runtime/latency', 'last-byte'],
  ['core/watching', 'watching'],
  ['endpoints/merge-and-map', 'endpoints'],
  ['envoy/large', 'envoy-large'],
  ['package/imports', 'imports'],
  ['package/bundles', 'bundles'],
] as const

/** Runs those that are named, or all; a table of one that was not run stays as it was. @returns the status of a process */
export function benchAll(names: readonly string[]): number {
  const chosen = PROGRAMS.filter(([name]) => names.length === 0 || names.includes(name))
  if (!existsSync(`${root}dist/index.js`)) {
    console.error('imports and bundles are those of the build: run "npm run build" first')
    return 2
  }
  const folder = mkdtempSync(join(tmpdir(), 'bench-'))
  const before = round(loadavg()[0])
  const failed: string[] = []
  try {
    for (const [name] of chosen) {
      console.log(`--- bench/${name}.ts`)
      const args = ['--import', `${root}scripts/source.mjs`, `${root}bench/${name}.ts`]
      const env = { ...process.env, [FOLDER]: folder }
      const { status } = spawnSync(process.execPath, args, { stdio: 'inherit', env })
      if (status !== 0) failed.push(name)
    }
    const known = existsSync(`${root}bench/results.json`) ? readResults().tables : []
    const tables = PROGRAMS.flatMap(([, id]) => {
      const path = join(folder, `${id}.json`)
      const now = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Table) : undefined
      return now ?? known.find((table) => table.id === id) ?? []
    })
    writeBenchmarks({ machine: machine(before), tables })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  for (const name of failed) console.error(`bench/${name}.ts failed`)
  return failed.length > 0 ? 1 : 0
}

function machine(before: number): Results['machine'] {
  return {
    day: new Date().toISOString().slice(0, 10),
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    gigabytes: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release().replace(/-.*/, '')} ${arch()}`,
    node: process.versions.node,
    load: [before, round(loadavg()[0])],
  }
}

function round(load = Number.NaN): number {
  return Math.round(load * 10) / 10
}
