import { globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../../../scripts/package/entries.ts'

const MOST_LINES = 400
/** One call from its beginning to its end: in parts it would be read with a finger in each. */
const LONGER: Readonly<Record<string, number>> = { 'src/core/calls/run/run.ts': 800 }
const MOST_FILES = 20

const sources = globSync('{src,scripts}/**/*.ts', { cwd: root }).filter(
  (path) => !path.includes('/gen/'),
)

test(`no file of the sources but one has more than ${MOST_LINES} lines`, () => {
  const long = sources.flatMap((path) => {
    const lines = readFileSync(join(root, path), 'utf8').split('\n').length - 1
    return lines > (LONGER[path] ?? MOST_LINES) ? [`${path}: ${lines}`] : []
  })
  expect(long).toEqual([])
})

test(`no folder of the sources has more than ${MOST_FILES} files`, () => {
  const full = [...new Set(sources.map((path) => dirname(path)))].flatMap((folder) => {
    const { length } = readdirSync(join(root, folder), { withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    )
    return length > MOST_FILES ? [`${folder}: ${length}`] : []
  })
  expect(full).toEqual([])
})
