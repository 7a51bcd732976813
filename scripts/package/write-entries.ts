/** Writes what comes from the list of entries into the files that hold it: `npm run entries`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { entries, root } from './entries.ts'
import { written } from './written.ts'

for (const { path, rewrite } of written) {
  const text = readFileSync(`${root}${path}`, 'utf8')
  const next = rewrite(text, entries)
  if (next === text) continue
  writeFileSync(`${root}${path}`, next)
  console.log(`${path} is written anew`)
}
