import { ready, restore, startDrain, type Ticket } from 'drainable'
import { haproxyDataplane, type HaproxyDataplaneOptions } from 'drainable/haproxy-dataplane'
import { startFake, type DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { connect, leaveDrained, present, until } from '../../support/dataplane.js'
import { addBackend } from '../../support/dataplane-writer.js'

const WEB1 = { pool: 'web', member: 'web1' }
const DURABLE = { durable: true, maintCuts: false } as const
const POOLS = { web: ['web1', 'web2'].map((name) => ({ name, weight: 7 })) }
const VERSIONS = ['2.9', '3.2', '3.4'] as const
const HINT = 'one that fails brings them back'

const lineOf = ({ config }: DataplaneFake): string => /server web1 .*/.exec(config)?.[0] ?? ''

/** A reload by another client, which succeeds or fails. */
async function reloaded(fake: DataplaneFake, name: string, complaint?: string): Promise<void> {
  if (complaint !== undefined) fake.refuseReload(complaint)
  await addBackend(fake, name)
  await fake.advanceReload()
  await fake.advanceReload()
}

/** A durable drain that is held; with a reload of others in it, unless told otherwise. */
async function drained(fake: DataplaneFake, isReloaded = true): Promise<Ticket> {
  await using lb = connect(fake, DURABLE)
  const ticket = await leaveDrained(lb)
  if (isReloaded) await reloaded(fake, 'others')
  return ticket
}

/** A reload of ours is waited for. */
const followed = ({ requests }: DataplaneFake): Promise<unknown> =>
  until('its reload is asked for', () =>
    Promise.resolve(requests.some(({ line }) => /GET .*\/reloads\/\d/.test(line))),
  )

const start = (version: string): Promise<DataplaneFake> =>
  startFake({ pools: POOLS, version, reloadDelay: Infinity, startup: Infinity })

describe.concurrent.each(VERSIONS)('marks in the last good file of %s', (version) => {
  test('are told by ready()', async () => {
    await using fake = await start(version)
    await drained(fake)
    await using lb = connect(fake, DURABLE)
    const { members } = await ready(lb, WEB1, { timeout: '60s' })
    expect(members[0]!.hints?.join()).toContain(HINT)
  })

  test('are told by restore()', async () => {
    await using fake = await start(version)
    const ticket = await drained(fake)
    await using lb = connect(fake, DURABLE)
    const { outcome, members } = await restore(lb, ticket)
    expect(outcome).toBe('restored')
    expect(members[0]!.lastReading).toHaveProperty('hints', [expect.stringContaining(HINT)])
  })

  test('are told by the undo of the drain itself', async () => {
    await using fake = await start(version)
    await using lb = connect(fake, DURABLE)
    const run = startDrain(lb, WEB1, { timeout: '60s' })
    expect((await run.done).outcome).toBe('idle')
    await reloaded(fake, 'others')
    const { outcome, members } = await run.restore()
    expect(outcome).toBe('restored')
    expect(members[0]!.lastReading).toHaveProperty('hints', [expect.stringContaining(HINT)])
  })

  // in 2.x a reload is a signal: one that fails is not noticed by the API, and nothing is rolled back
  test.runIf(version !== '2.9')('come back by a reload that fails, as told', async () => {
    await using fake = await start(version)
    const ticket = await drained(fake)
    await using lb = connect(fake, DURABLE)
    await restore(lb, ticket)
    expect(lineOf(fake)).toContain('weight 7')
    await reloaded(fake, 'broken', 'cannot bind socket')
    expect(lineOf(fake)).toContain('weight 0')
    expect((await present(lb, WEB1)).hints?.join()).toContain(HINT)
  })

  // what the API tells of the line then is its memory, without the marks
  test.runIf(version !== '2.9')('that came back are read and taken back by ready()', async () => {
    await using fake = await start(version)
    const ticket = await drained(fake)
    {
      await using lb = connect(fake, DURABLE)
      await restore(lb, ticket)
    }
    await reloaded(fake, 'broken', 'cannot bind socket')
    await using next = connect(fake, DURABLE)
    expect((await present(next, WEB1)).stored).toBeDefined()
    await ready(next, WEB1, { timeout: '10s' })
    expect(lineOf(fake)).toContain('weight 7')
  })

  test("are taken out by confirm: 'reload'", async () => {
    await using fake = await start(version)
    const ticket = await drained(fake)
    await using lb = connect(fake, { ...DURABLE, confirm: 'reload' })
    const undone = restore(lb, ticket)
    await followed(fake)
    await fake.advanceReload()
    await fake.advanceReload()
    const { outcome, members } = await undone
    expect(outcome).toBe('restored')
    expect(members[0]!.lastReading).not.toHaveProperty('hints')
    await reloaded(fake, 'broken', 'cannot bind socket')
    expect(lineOf(fake)).toContain('weight 7')
    expect(await present(lb, WEB1)).toMatchObject({ own: 'ready', serves: true, weight: 7 })
  })
})

describe.concurrent('a durable drain without a reload in it', () => {
  test.each([undefined, 'reload'] as const)('is undone without one: %s', async (confirm) => {
    await using fake = await start('3.4')
    const ticket = await drained(fake, false)
    await using lb = connect(fake, { ...DURABLE, confirm })
    const { members } = await restore(lb, ticket)
    expect(members[0]!.lastReading).not.toHaveProperty('hints')
    const sent = fake.requests.map(({ line }) => line)
    expect(sent.filter((line) => line.includes('transactions'))).toEqual([])
  })

  test('is undone by ready() of another process without a hint', async () => {
    await using fake = await start('3.4')
    await drained(fake, false)
    await using lb = connect(fake, DURABLE)
    const { members } = await ready(lb, WEB1, { timeout: '60s' })
    expect(members[0]).not.toHaveProperty('hints')
  })
})

test.each(VERSIONS.slice(1))('a failed reload of confirm leaves no mark on %s', async (version) => {
  await using fake = await start(version)
  const ticket = await drained(fake)
  await using lb = connect(fake, { ...DURABLE, confirm: 'reload' })
  fake.refuseReload('cannot bind socket')
  const undone = restore(lb, ticket)
  await followed(fake)
  await fake.advanceReload()
  const { outcome, members } = await undone
  expect(outcome).toBe('restored')
  expect(JSON.stringify(members[0]!.lastReading)).toContain('cannot bind socket')
  expect(lineOf(fake)).toContain('weight 7')
  expect(await present(lb, WEB1)).toMatchObject({ own: 'ready', serves: true })
})

test('the hint ends with the next reload that succeeds', async () => {
  await using fake = await start('3.4')
  const ticket = await drained(fake)
  await using lb = connect(fake, DURABLE)
  await restore(lb, ticket)
  await reloaded(fake, 'more')
  expect((await present(lb, WEB1)).hints).toBeUndefined()
})

test('confirm is refused without durable', () => {
  const options = { url: 'http://127.0.0.1:1', username: 'a', password: 'b', confirm: 'reload' }
  expect(() => haproxyDataplane(options as HaproxyDataplaneOptions)).toThrow(/confirm.*durable/)
})
