import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../../../scripts/package/entries.ts'

/** What calls a caller's store, its listener or its lease. Each has a limit, and races an abort. */
const BOUNDED = [
  'src/core/tickets/calls.ts',
  'src/core/tickets/writing/writer.ts',
  'src/fleet/lease/leadership.ts',
]

const CALL =
  /\bstore\??\.(?:get|set|delete|keys)\??\.?\(|\bonTicket\(|\blease\.(?:acquire|renew|release)\(/

test('a store, a listener and a lease are called in three files only', () => {
  const calling = globSync('src/{core,fleet,reconcile,kit,provider}/**/*.ts', { cwd: root }).filter(
    (path) => {
      const code = readFileSync(join(root, path), 'utf8').replaceAll(
        /^\s*(?:\*|\/\/|\/\*).*$/gm,
        '',
      )
      return CALL.test(code)
    },
  )
  expect(calling.sort()).toEqual(BOUNDED)
})
