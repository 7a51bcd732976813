/**
 * Plays the histories of this folder: README.md has the language. `npm run histories` writes what is seen today into
 * the files; read the difference, line by line, before it is committed.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { play } from './play/play.js'
import { formatEntries, formatHistories, parseHistories, type History } from './play/text.js'

const folder = import.meta.dirname
const rewrites = process.env['HISTORIES'] === 'rewrite'

for (const name of readdirSync(folder).filter((each) => each.endsWith('.txt'))) {
  const path = join(folder, name)
  const file = parseHistories(readFileSync(path, 'utf8'), name)
  const histories: History[] = [...file.histories]
  describe(name, () => {
    histories.forEach((history, index) => {
      test(history.title, async () => {
        const played = await play(history)
        if (rewrites) {
          histories[index] = played
          writeFileSync(path, formatHistories({ ...file, histories }))
        } else
          expect(formatEntries(played.entries).join('\n')).toBe(
            formatEntries(history.entries).join('\n'),
          )
      })
    })
  })
}
