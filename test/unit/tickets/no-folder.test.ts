import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fileTickets } from 'drainable'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'drainable-no-folder-'))
  await writeFile(join(folder, 'file'), '')
})

afterAll(() => rm(folder, { recursive: true }))

it.each(['file', 'file/below'])('says of %s that it is no folder', async (name) => {
  const store = fileTickets(join(folder, name))
  const refused = { code: 'INVALID_OPTIONS', message: /is no folder, or goes through a file/ }
  await expect(Promise.resolve(store.get('a'))).rejects.toMatchObject({ code: refused.code })
  await expect(Promise.resolve(store.set('a', {}))).rejects.toThrow(refused.message)
})

it('makes a folder within folders that are not there', async () => {
  const store = fileTickets(join(folder, 'a/b/c'))
  await store.set('one', { v: 1 })
  expect(await store.get('one')).toEqual({ v: 1 })
})

// Node's recursive mkdir is busy there for ever.
it.runIf(existsSync('/proc/self'))('ends where nothing can be made', async () => {
  const store = fileTickets('/proc/drainable-nowhere')
  await expect(Promise.resolve(store.set('a', {}))).rejects.toThrow('ENOENT')
})
