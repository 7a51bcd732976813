import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { root } from '../../../scripts/package/entries.ts'
import type { SkipList } from '../../contract/skipped/cases.js'

const FOLDER = 'test/contract/skipped'
const LACKING = /^the harness has no (\w+)$/

const lists = globSync(`${FOLDER}/*.ts`, { cwd: root })
  .map((path) => basename(path, '.ts'))
  .filter((name) => name !== 'cases')

const read = (path: string): string => readFileSync(join(root, path), 'utf8')

describe.each(lists)('cases that are skipped for %s', (name) => {
  test('each hook that a setup lacks has a reason, and no other', async () => {
    const list = (await import(join(root, FOLDER, `${name}.ts`))) as SkipList
    const lacking = Object.values(list.SKIPPED)
      .flatMap((skipped) => Object.values(skipped))
      .flatMap((reason) => LACKING.exec(reason)?.[1] ?? [])
    expect(Object.keys(list.NO_HOOK).sort()).toEqual([...new Set(lacking)].sort())
  })

  test('each setup is one of a contract test', async () => {
    const list = (await import(join(root, FOLDER, `${name}.ts`))) as SkipList
    const tests = globSync(`test/{contract,engine/*}/*.test.ts`, { cwd: root })
      .map(read)
      .filter((text) => text.includes(`skipped/${name}.js'`))
      .join('\n')
    const used = (setup: string): boolean =>
      tests.includes(`SKIPPED.${setup}`) ||
      tests.includes('SKIPPED[') ||
      tests.includes(`'${setup}'`)
    expect(Object.keys(list.SKIPPED).filter((setup) => !used(setup))).toEqual([])
  })
})

test('every contract test skips by a list', () => {
  const direct = globSync('test/{contract,engine}/**/*.test.ts', { cwd: root }).filter(
    (path) =>
      /for \(const .* of providerContract\(/.test(read(path)) &&
      !/from '.*skipped\//.test(read(path)),
  )
  expect(direct).toEqual([])
})
