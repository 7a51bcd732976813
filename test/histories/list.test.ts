/** What may turn is on a list: a history that is marked stands on it, and what stands on it is there. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseHistories } from './play/text.js'

const folder = import.meta.dirname
const page = readFileSync(join(folder, '../../docs/decisions/core.md'), 'utf8')
const list = page.slice(page.indexOf('## What turns'), page.indexOf('## What holds before'))

const histories = readdirSync(folder)
  .filter((name) => name.endsWith('.txt'))
  .flatMap((name) => {
    const file = parseHistories(readFileSync(join(folder, name), 'utf8'), name)
    return file.histories.map(({ title, before }) => ({ name, title, before }))
  })

test('every history that is marked is on the list', () => {
  const marked = histories.filter(({ before }) =>
    // The head of a file is about all of its histories.
    before.slice(before.lastIndexOf('')).some((line) => /^# (landing \d|wrong today)/.test(line)),
  )
  expect(marked.length).toBeGreaterThan(20)
  expect(marked.filter(({ title }) => !list.includes(`"${title}"`))).toEqual([])
})

test('every history on the list is there', () => {
  const rows = list.split('\n').filter((line) => /^\|.*\.txt`/.test(line))
  const named = rows.flatMap((row) => [...row.matchAll(/"([^"]+)"/g)].map((match) => match[1]!))
  const titles = new Set(histories.map(({ title }) => title))
  expect(named.length).toBeGreaterThan(20)
  expect(named.filter((title) => !titles.has(title))).toEqual([])
})

describe('a title is one claim under 70 characters', () => {
  test('in every file', () => {
    expect(histories.filter(({ title }) => title.length >= 70)).toEqual([])
  })

  test('and no two of a file are the same', () => {
    const keys = histories.map(({ name, title }) => `${name}: ${title}`)
    expect(keys.filter((key, i) => keys.indexOf(key) !== i)).toEqual([])
  })
})
