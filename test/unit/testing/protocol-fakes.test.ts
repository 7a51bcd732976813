import { readdirSync } from 'node:fs'
import type { ProtocolFailure, ProtocolFake } from 'drainable/testing'
import { describe, expect, test } from 'vitest'
import { adapterNames } from '../../../scripts/package/entries.ts'
import { freePort } from '../../../scripts/ports.ts'
import { eventually } from '../../support/eventually.js'
import type { Said, Subject } from './protocol-fakes/client.js'

const folder = new URL('./protocol-fakes/', import.meta.url)
const names = readdirSync(folder)
  .map((file) => file.replace(/\.ts$/, ''))
  .filter((name) => name !== 'client')
  .sort()
const subjects = await Promise.all(
  names.map(async (name) => {
    const { subject } = (await import(`${folder.href}${name}.ts`)) as { subject: Subject }
    return [name, subject] as const
  }),
)

/** A running fake, with what its product wants to be asked. */
async function open(subject: Subject, more?: object) {
  const fake = await subject.start(more)
  const given = fake as never
  return {
    fake,
    change: () => subject.change(given),
    read: () => subject.read(given),
    isDone: async () => (await subject.isDone?.(given)) ?? false,
    [Symbol.asyncDispose]: () => fake.close(),
  }
}

/** For a fake that does not listen for a while: nobody else takes its port meanwhile. A path is its own anyway. */
async function ownPort(name: string): Promise<{ port?: number }> {
  return name === 'haproxy-runtime' ? {} : { port: await freePort() }
}

/** What came of a request: an answer, none (yet), or a connection that was cut or refused. */
async function outcome(asked: Promise<Said>): Promise<'ok' | 'error' | 'cut' | 'refused'> {
  try {
    return (await asked).ok ? 'ok' : 'error'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED' ? 'refused' : 'cut'
  }
}

test('every protocol fake of the package is tested', () => {
  expect(names).toEqual([...adapterNames()].sort())
})

describe.each(subjects)('the fake of %s', (name, subject) => {
  test.each([
    ['status', 'error'],
    ['refuse', 'cut'],
    ['reset', 'cut'],
  ] as const)(
    '%s with a match: only this request fails, and is not carried out',
    async (how, is) => {
      await using it = await open(subject)
      const end = it.fake.fail({ match: subject.line, how })
      expect(await outcome(it.change())).toBe(is)
      expect(await outcome(it.change())).toBe(is)
      expect(await outcome(it.read())).toBe('ok')
      expect(await it.isDone()).toBe(false)
      await end()
      expect(await outcome(it.change())).toBe('ok')
      expect(await it.isDone()).toBe(subject.isDone !== undefined)
    },
  )

  test.each([
    ['port', '80'],
    ['version', 3],
    ['pools', { web: 'web1' }],
    ['clock', 5],
    ['username', 5],
  ])('an option of another type is named: %s', async (option, value) => {
    const started = subject.start({ [option]: value })
    const words = new RegExp(`startFake\\(\\): (${option}\\b.*expected|unknown option '${option}')`)
    await expect(started).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
    await expect(started).rejects.toThrow(words)
  })

  test('status: has the words of the product', async () => {
    await using it = await open(subject)
    it.fake.fail({ match: subject.line, how: 'status' })
    expect((await it.change()).text).toMatch(subject.words)
  })

  test('refuse: nothing listens and nothing is remembered until it ends', async () => {
    await using it = await open(subject, await ownPort(name))
    const end = it.fake.fail({ how: 'refuse' })
    const second = it.fake.fail({ how: 'refuse' })
    expect(await outcome(it.read())).toBe('refused')
    await end()
    await end()
    expect(await outcome(it.read())).toBe('refused')
    expect(it.fake.requests).toEqual([])
    await second()
    expect(await outcome(it.read())).toBe('ok')
  })

  test('silent: no answer and no end, not carried out', async () => {
    await using it = await open(subject)
    const end = it.fake.fail({ match: subject.line, how: 'silent' })
    const asked = outcome(it.change())
    await eventually(() => expect(it.fake.requests).toHaveLength(1))
    expect(await outcome(it.read())).toBe('ok')
    await end()
    const still = Symbol('no answer')
    expect(await Promise.race([asked, Promise.resolve(still)])).toBe(still)
    expect(await it.isDone()).toBe(false)
    await it.fake.close()
    expect(await asked).toBe('cut')
  })

  test('garbage: an answer that the product never gives, not carried out', async () => {
    await using it = await open(subject)
    const { text } = await it.change()
    await it.fake.setBehind(subject.ref, 'ready')
    it.fake.fail({ match: subject.line, how: 'garbage' })
    const garbage = await it.change()
    expect(garbage.text).not.toBe('')
    expect(garbage.text).not.toBe(text)
    expect(garbage.text).not.toMatch(subject.words)
    expect(await it.isDone()).toBe(false)
  })

  test.each(['status', 'reset', 'silent', 'garbage'] as const)(
    '%s that executes: carried out nevertheless',
    async (how) => {
      await using it = await open(subject)
      it.fake.fail({ match: subject.line, how, execute: true })
      const asked = outcome(it.change())
      await eventually(() => expect(it.fake.requests).toHaveLength(1))
      await eventually(async () => expect(await it.isDone()).toBe(subject.isDone !== undefined))
      await it.fake.close()
      expect(await asked).not.toBe('refused')
    },
  )

  test('times and skip count the requests that match', async () => {
    await using it = await open(subject)
    it.fake.fail({ match: subject.line, how: 'status', skip: 1, times: 2 })
    const seen: string[] = []
    for (let i = 0; i < 4; i++) {
      seen.push(await outcome(it.change()))
      expect(await outcome(it.read())).toBe('ok')
    }
    expect(seen).toEqual(['ok', 'error', 'error', 'ok'])
  })

  test('of two matching failures the older one counts until it ends', async () => {
    await using it = await open(subject)
    const end = it.fake.fail({ match: subject.line, how: 'reset' })
    it.fake.fail({ match: subject.line, how: 'garbage' })
    expect(await outcome(it.change())).toBe('cut')
    await end()
    expect(await outcome(it.change())).not.toBe('cut')
  })

  test('requests has every line that came, oldest first, failed ones too', async () => {
    await using it = await open(subject)
    await it.read()
    it.fake.fail({ match: subject.line, how: 'reset' })
    await outcome(it.change())
    await it.read()
    const [first, second, third] = it.fake.requests.map(({ line }) => line)
    expect(second).toMatch(subject.line)
    expect(first).not.toMatch(subject.line)
    expect(third).toBe(first)
    expect(it.fake.requests).toHaveLength(3)
  })

  test('work ends once, by what began it', async () => {
    await using it = await open(subject)
    const end = await it.fake.occupy(subject.ref)
    const other = await it.fake.occupy(subject.ref)
    await end()
    await end()
    await other()
    await expect(async () => it.fake.occupy({ pool: 'nope', member: 'x' })).rejects.toThrow()
  })

  test('a change that can not be made by the test is a rejection', async () => {
    await using it = await open(subject)
    await expect(it.fake.setBehind({ pool: 'nope', member: 'x' }, 'drain')).rejects.toThrow()
  })

  test('restart: it answers at the same place, and takes work as before', async () => {
    await using it = await open(subject, await ownPort(name))
    const end = await it.fake.occupy(subject.ref)
    await it.fake.restart()
    expect(await outcome(it.read())).toBe('ok')
    await end()
    await it.fake.occupy(subject.ref)
  })

  test('an unknown option is refused by name', async () => {
    await expect(subject.start({ poolz: {} })).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringContaining('poolz') as unknown,
    })
  })

  test.each([
    [{ how: 'lost' }, 'how'],
    [{ how: 'reset', match: /a/g }, 'match'],
    [{ how: 'reset', times: 0 }, 'times'],
    [{ how: 'reset', skip: -1 }, 'skip'],
  ])('an invalid failure (%o) is refused by name', async (what, name) => {
    await using it = await open(subject)
    const refused = { code: 'INVALID_OPTIONS', message: expect.stringContaining(name) as unknown }
    expect(() => it.fake.fail(what as never)).toThrow(expect.objectContaining(refused) as Error)
  })

  test('close: nothing is left open, even of what refuses or waits', async () => {
    const ports = [await ownPort(name), await ownPort(name)]
    const before = sockets()
    const fakes = [await subject.start(ports[0]), await subject.start(ports[1])]
    const [silent, refusing] = fakes as [ProtocolFake, ProtocolFake]
    const how: ProtocolFailure = { how: 'silent' }
    silent.fail(how)
    const waiting = outcome(subject.read(silent as never))
    await eventually(() => expect(silent.requests).toHaveLength(1))
    const end = refusing.fail({ how: 'refuse' })
    await Promise.all(fakes.map((fake) => fake.close()))
    await Promise.all(fakes.map((fake) => fake.close()))
    await end()
    expect(await waiting).toBe('cut')
    for (const fake of fakes) {
      expect(await outcome(subject.read(fake as never))).not.toMatch(/ok|error/)
    }
    await eventually(() => expect(without(sockets(), before)).toEqual([]))
  })
})

/** What is in the first list more often than in the second. */
function without(all: readonly string[], some: readonly string[]): readonly string[] {
  const left = [...some]
  return all.filter((kind) => {
    const at = left.indexOf(kind)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}

/** Servers and connections of this process. */
function sockets(): readonly string[] {
  const kinds = /^(TCP|Pipe|TLS)/
  return process
    .getActiveResourcesInfo()
    .filter((kind) => kinds.test(kind))
    .sort()
}
