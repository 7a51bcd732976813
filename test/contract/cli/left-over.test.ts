/** What a command leaves that was killed, as the next command finds it. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startFake, type HaproxyFake } from 'drainable/testing/haproxy-runtime'
import type { Ticket } from 'drainable'
import { EXIT } from '../../../src/cli/exit-code.js'
import { TestIo } from '../../support/command.js'
import { haproxyUrl } from '../../support/haproxy-url.js'

const web1 = { pool: 'web', member: 'web1' }
/** Above what Linux and macOS give out. */
const NO_PROCESS = 2 ** 30

const fakeHaproxy = (): Promise<HaproxyFake> =>
  startFake({ pools: { web: ['web1', 'web2', 'web3'] }, master: true })

/** Makes each ticket one of another process, which has ended: under its old id this one deletes it itself. */
function killOwners(folder: string): void {
  for (const name of readdirSync(folder)) {
    const file = join(folder, name)
    const ticket = JSON.parse(readFileSync(file, 'utf8')) as Ticket
    const owner = { ...ticket.owner, pid: NO_PROCESS, started: null }
    const id = `left-${ticket.id}`
    rmSync(file)
    writeFileSync(join(folder, `${id}.json`), JSON.stringify({ ...ticket, id, owner }))
  }
}

describe.concurrent('the tickets of ended processes', () => {
  test('are deleted by ready, also where the member was out before', async () => {
    await using fake = await fakeHaproxy()
    using io = new TestIo()
    const folder = join(io.home, 'tickets')
    const at = [haproxyUrl(fake), 'web/web1', '--tickets', folder] as const
    await fake.setBehind(web1, 'drain')
    expect(await io.run('drain', ...at, '--timeout', '30s')).toBe(EXIT.ok)
    killOwners(folder)
    expect(readdirSync(folder)).toHaveLength(1)
    expect(await io.run('ready', ...at)).toBe(EXIT.ok)
    expect(readdirSync(folder)).toEqual([])
  })
})
