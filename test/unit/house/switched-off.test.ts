import { globSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { root } from '../../../scripts/package/entries.ts'

const MOST = 20

it(`a comment switches off a check of the linter in ${MOST} places at most`, () => {
  const files = globSync('{src,scripts,bench,examples,test,.ci}/**/*.{ts,js,mjs,cjs}', {
    cwd: root,
  })
  const word = ['eslint', 'disable'].join('-')
  const places = files
    .filter((path) => !path.includes('/gen/') && !path.startsWith('src/core/'))
    .flatMap((path) => {
      const lines = readFileSync(`${root}${path}`, 'utf8').split('\n')
      return lines.flatMap((line, index) => (line.includes(word) ? [`${path}:${index + 1}`] : []))
    })
  expect(places.slice(MOST)).toEqual([])
})
