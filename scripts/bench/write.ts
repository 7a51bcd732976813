/** Writes docs/benchmarks.md, its plots, and the figures that README.md quotes, from bench/results.json. */
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { toPage, toPlot, withFigures, type Results } from './page.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Every file that is made of the results, by its path from the root. */
export function benchmarkFiles(results: Results): ReadonlyMap<string, string> {
  const plots = results.tables.flatMap((table) => {
    const plot = toPlot(table)
    return plot === undefined ? [] : [[`docs/pictures/bench-${table.id}.svg`, plot] as const]
  })
  const readme = readFileSync(`${root}README.md`, 'utf8')
  return new Map([
    ['docs/benchmarks.md', toPage(results)],
    ...plots,
    ['README.md', withFigures(readme, results)],
  ])
}

export function readResults(): Results {
  return JSON.parse(readFileSync(`${root}bench/results.json`, 'utf8')) as Results
}

export function writeBenchmarks(results: Results): void {
  writeFileSync(`${root}bench/results.json`, `${JSON.stringify(results, null, 2)}\n`)
  for (const name of readdirSync(`${root}docs/pictures`))
    if (name.startsWith('bench-')) rmSync(`${root}docs/pictures/${name}`)
  for (const [path, text] of benchmarkFiles(results)) writeFileSync(`${root}${path}`, text)
}
