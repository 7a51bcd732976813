import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fileTickets } from 'drainable'
import { dropTicket, listTickets, saveTicket } from './calls.js'
import { temporaryFolder, ticketOf } from './set-up.js'

const LEFTOVER = 'old.json.4711-815-00000000-3d6c4cb6d3f2.tmp'

describe('fileTickets', () => {
  test('keeps a ticket in one private file of its name, and nothing else', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'tickets')
    const store = fileTickets(path)
    await saveTicket(store, ticketOf('maint-1'))
    expect(await readdir(path)).toEqual(['maint-1.json'])
    expect((await stat(path)).mode & 0o777).toBe(0o700)
    expect((await stat(join(path, 'maint-1.json'))).mode & 0o777).toBe(0o600)
    expect(JSON.parse(await readFile(join(path, 'maint-1.json'), 'utf8'))).toEqual(
      ticketOf('maint-1'),
    )
    await dropTicket(store, 'maint-1')
    expect(await readdir(path)).toEqual([])
  })

  test('refuses a path that no folder can have', () => {
    expect(() => fileTickets('a\0b')).toThrow('fileTickets(): path: expected the path of a folder')
  })

  test('has no keys without a folder', async () => {
    await using folder = await temporaryFolder()
    const store = fileTickets(join(folder.path, 'none'))
    expect(await store.keys?.()).toEqual([])
    expect(await listTickets(store)).toEqual([])
    expect(await readdir(folder.path)).toEqual([])
  })

  test('does not take another file for a ticket', async () => {
    await using folder = await temporaryFolder()
    const store = fileTickets(folder.path)
    await saveTicket(store, ticketOf('one'))
    await mkdir(join(folder.path, 'folder.json'))
    for (const name of ['notes.txt', '.hidden.json', 'two words.json', 'json', '.json', LEFTOVER]) {
      await writeFile(join(folder.path, name), '{}')
    }
    expect(await store.keys?.()).toEqual(['one'])
  })

  test('lists a damaged ticket with the others, and refuses to read it', async () => {
    await using folder = await temporaryFolder()
    const store = fileTickets(folder.path)
    await saveTicket(store, ticketOf('one'))
    await writeFile(join(folder.path, 'damaged.json'), '{"v":1,"id":"dam')
    await writeFile(join(folder.path, 'empty.json'), '')
    expect(await listTickets(store)).toEqual(['damaged', 'empty', 'one'])
    await expect(store.get('damaged')).rejects.toMatchObject({ code: 'TICKET_INVALID' })
  })

  test('overwrites a damaged ticket of the same id', async () => {
    await using folder = await temporaryFolder()
    const store = fileTickets(folder.path)
    await writeFile(join(folder.path, 'one.json'), '{"v":1,')
    await saveTicket(store, ticketOf('one'))
    expect(await store.get('one')).toEqual(ticketOf('one'))
  })

  test.each(['../up', 'a/b', 'a\\b', '.hidden', '..', '', 'x'.repeat(201), 'a b'])(
    "refuses '%s' as an id",
    async (id) => {
      await using folder = await temporaryFolder()
      const store = fileTickets(folder.path)
      for (const call of [store.get(id), store.set(id, {}), store.delete(id)]) {
        await expect(call).rejects.toMatchObject({ code: 'TICKET_INVALID' })
      }
      expect(await readdir(folder.path)).toEqual([])
    },
  )

  test('removes what a writer elsewhere left an hour ago, nothing newer', async () => {
    await using folder = await temporaryFolder()
    const fresh = LEFTOVER.replace('old', 'fresh')
    const foreign = 'backup.tmp'
    for (const name of [LEFTOVER, fresh, foreign]) await writeFile(join(folder.path, name), '{')
    const before = new Date(Date.now() - 3_700_000)
    for (const name of [LEFTOVER, foreign]) await utimes(join(folder.path, name), before, before)
    await saveTicket(fileTickets(folder.path), ticketOf('one'))
    expect((await readdir(folder.path)).sort()).toEqual([foreign, fresh, 'one.json'])
  })

  test('removes at once what a writer that is dead has left, and no other', async () => {
    await using folder = await temporaryFolder()
    const [dead = ''] = await crashedWriter(folder.path)
    const living = dead.replace(/\.json\.\d+-\d+-/, `.json.${process.pid}-0-`)
    const elsewhere = dead.replace(/-[0-9a-f]{8}-/, '-00000000-')
    for (const name of [living, elsewhere]) await writeFile(join(folder.path, name), '{')
    // In a process of its own: this one may have played another boot of the machine in the tests before.
    await ran('writer', folder.path)
    const left = (await readdir(folder.path)).filter((name) => name.endsWith('.tmp'))
    expect(left.sort()).toEqual([living, elsewhere].sort())
  })
})

/** A process that ends between the write of a temporary file and its rename. Returns what it left. */
async function crashedWriter(path: string): Promise<string[]> {
  await ran('crashed-writer', path)
  return readdir(path)
}

/** Runs a program of test/support to its end. */
async function ran(program: string, path: string): Promise<void> {
  const child = fork(new URL(`../../support/${program}.ts`, import.meta.url), [path], {
    execArgv: ['--import', new URL('../../../scripts/source.mjs', import.meta.url).href],
    stdio: 'inherit',
  })
  await once(child, 'exit')
}
