/**
 * What a program weighs that is bundled into one file: the smallest, and the first script of the README.
 *
 * `npm run build && npm run bench package/bundles`
 */
import { keep } from '../support/tables.ts'
import { bundledSize, readmeScript, SMALLEST } from './support/bundled.ts'

const programs = [
  ['isDrainableError and toDuration alone', SMALLEST],
  ["the README's first script (HAProxy)", readmeScript()],
] as const
const rows: [string, number][] = []
for (const [name, program] of programs) {
  rows.push([name, Math.round((await bundledSize(program)) / 100) / 10])
  console.log(`${name}: ${rows.at(-1)?.[1] ?? 0} kB minified`)
}
keep({
  id: 'bundles',
  title: 'What a bundled program weighs',
  about:
    'Minified by esbuild into one file for Node, with everything of ours and `undici` left outside.',
  columns: ['program', 'kB'],
  rows,
  notShown: 'Compressed sizes, which matter for downloads and not for the time to parse.',
})
