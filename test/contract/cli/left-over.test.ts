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

/** Two balancers, and what is left of drains of them. */
async function two(io: TestIo, east: HaproxyFake, west: HaproxyFake, ...drains: string[][]) {
  const file = join(io.home, 'drainable.json')
  const balancers = { east: haproxyUrl(east), west: haproxyUrl(west) }
  writeFileSync(file, JSON.stringify({ balancers, tickets: 'tickets' }))
  const config = ['--config', file]
  for (const argv of drains) expect(await io.run('drain', ...argv, ...config)).toBe(EXIT.ok)
  killOwners(join(io.home, 'tickets'))
  return config
}

describe.concurrent('a drain that was killed', () => {
  test('over several balancers is named by the orphans, and the restore, of one', async () => {
    await using east = await fakeHaproxy()
    await using west = await fakeHaproxy()
    using io = new TestIo()
    const both = ['all', 'east:web/web1', 'west:web/web1', '--id', 'job']
    const config = await two(io, east, west, both)
    const found = await io.play('orphans', 'east', ...config)
    const words =
      "ticket left-job of other balancers may hold east:web/web1: 'drainable orphans east,west' lists it"
    expect([found.code, found.out]).toEqual([EXIT.ok, `${words}\n`])
    const restored = await io.play('restore', 'east', ...config)
    expect([restored.code, restored.err]).toEqual([EXIT.missing, expect.stringContaining(words)])
    expect(await io.document('orphans', 'east', ...config)).toMatchObject({
      orphans: [],
      elsewhere: [{ ticket: 'left-job', balancers: 'east,west' }],
    })
    expect(await io.document('orphans', 'east,west', ...config)).toMatchObject({
      orphans: [{ ticket: 'left-job' }],
    })
  })

  test('over one balancer is named by the orphans of all', async () => {
    await using east = await fakeHaproxy()
    await using west = await fakeHaproxy()
    using io = new TestIo()
    const config = await two(io, east, west, ['east', 'web/web1', '--id', 'job'])
    const { out } = await io.play('orphans', 'all', ...config)
    expect(out).toContain("may hold web/web1: 'drainable orphans east' lists it")
    expect((await io.play('orphans', 'west', ...config)).out).toBe('no drain is left over\n')
  })

  test('of all is named by the orphans of one of them', async () => {
    await using east = await fakeHaproxy()
    await using west = await fakeHaproxy()
    using io = new TestIo()
    const config = await two(io, east, west, ['all', 'east:web/web1', '--id', 'job'])
    const { out } = await io.play('orphans', 'east', ...config)
    expect(out).toContain("may hold east:web/web1: 'drainable orphans all' lists it")
    expect((await io.play('orphans', 'all', ...config)).out).toContain('left-job  drain begun')
  })
})
