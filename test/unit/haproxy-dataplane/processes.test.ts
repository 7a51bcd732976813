import type { LoadScope } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import type { HardStop } from '../../../src/adapters/haproxy-dataplane/read/hard-stop.js'
import { ProcessMemory } from '../../../src/adapters/haproxy-dataplane/read/processes.js'

const REF = { pool: 'web', member: 'web1' }
type OldWorkers = ConstructorParameters<typeof ProcessMemory>[0]

class Story {
  readonly memory: ProcessMemory
  now = 0
  version: string | undefined = '1'

  constructor(oldWorkers: OldWorkers = 'wait') {
    this.memory = new ProcessMemory(oldWorkers)
  }

  view(pid: number, uptime: number) {
    const infos = [{ node: 'lb', pid, uptime, version: '3.2' }]
    return { infos, sampledAt: this.now, configVersion: this.version }
  }

  /** The configuration is read. */
  told(value: HardStop, settled = true): this {
    this.memory.hardStop({ value, settled }, this.now)
    return this
  }

  /** One look: the process that answers, and how the member is found. */
  look(pid: number, uptime: number, held: boolean, active = 0): readonly LoadScope[] {
    this.now += 1_000
    const processes = this.memory.note(this.view(pid, uptime), this.now)
    const read = processes.map((process): LoadScope => ({
      ...process,
      state: 'read',
      sampledAt: this.now,
      active,
      queued: 0,
      arrivals: 1,
      inForce: true,
    }))
    return this.memory.scopes(REF, processes, read, held, this.now)
  }
}

function states(scopes: readonly LoadScope[]): string[] {
  return scopes.map(({ scope, state }) => `${scope} ${state}`)
}

describe('a reload in mid-drain', () => {
  test('leaves the replaced process listed as unread, with its last work', () => {
    const story = new Story()
    story.look(1, 100, true, 3)
    const scopes = story.look(2, 0, false)
    expect(states(scopes)).toEqual(['worker 2 read', 'worker 1 unread'])
    expect(scopes[1]).toMatchObject({ active: 3, old: true })
    expect(scopes[1]!.note).toContain('oldWorkers')
    expect(states(story.look(2, 900, true))).toContain('worker 1 unread')
  })

  test('counts from when the hold is sent, not from when it is seen', () => {
    const story = new Story()
    story.look(1, 100, false)
    story.memory.holding(REF, story.now)
    expect(states(story.look(2, 0, false))).toContain('worker 1 unread')
  })

  test('is listed if it came and went between two looks with the hold', () => {
    const story = new Story()
    story.look(1, 100, false)
    story.memory.note(story.view(2, 0), story.now)
    story.memory.holding(REF, story.now)
    expect(states(story.look(3, 0, false))).toEqual([
      'worker 3 read',
      'worker 1 unread',
      'worker 2 unread',
    ])
  })

  test('leaves a process that counts as ended, with accept', () => {
    const story = new Story('accept')
    story.look(1, 100, true)
    expect(states(story.look(2, 0, true))).toEqual(['worker 2 read', 'worker 1 ended'])
    expect(story.memory.unverified([])).toContain('reload')
  })

  test('leaves one that ends the set time after the present start, with within', () => {
    const story = new Story({ within: 30_000 })
    story.look(1, 100, true)
    expect(states(story.look(2, 10, true))).toContain('worker 1 unread')
    story.now += 19_000
    expect(states(story.look(2, 29, true))).toContain('worker 1 unread')
    story.now += 8_000
    // a slow start: up for 39 s, but the old one was told to stop less than 30 s ago at the earliest
    expect(states(story.look(2, 39, true))).toContain('worker 1 unread')
    story.now += 1_000
    expect(states(story.look(2, 41, true))).toContain('worker 1 ended')
  })

  test('leaves two processes if there were two reloads', () => {
    const story = new Story()
    story.look(1, 100, true)
    story.look(2, 1, true)
    expect(states(story.look(3, 1, true))).toEqual([
      'worker 3 read',
      'worker 1 unread',
      'worker 2 unread',
    ])
  })
})

describe('hard-stop-after of the configuration', () => {
  test('ends a process that was started after it was read', () => {
    const story = new Story().told(5_000)
    story.look(1, 100, true)
    story.look(2, 0, true)
    for (let uptime = 0; uptime < 6; uptime++)
      expect(states(story.look(3, uptime, true))).toContain('worker 2 unread')
    const scopes = states(story.look(3, 6, true))
    expect(scopes).toContain('worker 2 ended')
    expect(scopes).toContain('worker 1 unread')
    expect(story.memory.unverified([])).toContain('5000 ms')
  })

  test.each([1, 1_000])('says nothing of a process that was there %d s before', (long) => {
    const story = new Story().told(5_000)
    for (let i = 0; i < long; i++) story.look(1, 100 + i, true)
    for (let uptime = 0; uptime < 30; uptime++)
      expect(states(story.look(2, uptime, true))).toContain('worker 1 unread')
    expect(story.look(2, 31, true)[1]!.note).toContain('was not known before it was started')
  })

  test('says nothing of a process that may have been started just before', () => {
    const story = new Story().told(5_000)
    story.look(1, 1, true)
    for (let uptime = 0; uptime < 30; uptime++)
      expect(states(story.look(2, uptime, true))).toContain('worker 1 unread')
  })

  test('says nothing if it was read while a reload was under way', () => {
    const story = new Story().told(5_000, false)
    story.look(1, 100, true)
    story.look(2, 0, true)
    story.told(5_000)
    for (let uptime = 0; uptime < 30; uptime++)
      expect(states(story.look(3, uptime, true))).toContain('worker 2 unread')
  })

  test.each(['4', undefined])('says nothing after writes that were not seen: %s', (version) => {
    const story = new Story().told(5_000)
    story.look(1, 100, true)
    story.version = version
    story.look(2, 0, true)
    story.told(5_000)
    for (let uptime = 0; uptime < 30; uptime++)
      expect(states(story.look(3, uptime, true))).toContain('worker 2 unread')
  })

  test('counts from when a process was told to stop', () => {
    const story = new Story('hard-stop-after').told(30_000)
    const at = (uptime: number): unknown =>
      story.memory.unverified(story.memory.note(story.view(1, uptime), 0))
    expect(at(30)).toContain('is not over yet')
    expect(at(31)).toBeUndefined()
  })

  test.each(['unset', 900_000] as const)('that is %s ends nothing in a minute', (value) => {
    const story = new Story('hard-stop-after').told(1_000).told(value)
    story.look(1, 100, true)
    for (let uptime = 0; uptime < 30; uptime++)
      expect(states(story.look(2, uptime, true))).toContain('worker 1 unread')
  })

  test('counts by the largest value that was seen', () => {
    const story = new Story('hard-stop-after').told(300_000)
    story.look(1, 100, true)
    story.told(2_000)
    for (let uptime = 0; uptime < 30; uptime++)
      expect(states(story.look(2, uptime, true))).toContain('worker 1 unread')
  })

  test('is no word for a process that a reload was to replace', () => {
    const story = new Story('hard-stop-after')
    story.look(1, 100, true)
    story.told(2_000, false)
    expect(story.memory.unverified(story.memory.note(story.view(1, 100), 0))).toContain('under way')
    story.look(2, 0, true)
    story.told(2_000)
    for (let uptime = 0; uptime < 30; uptime++)
      expect(states(story.look(2, uptime, true))).toContain('worker 1 unread')
    for (let uptime = 0; uptime < 3; uptime++) story.look(3, uptime, true)
    expect(states(story.look(3, 3, true))).toContain('worker 2 ended')
  })
})

describe('a process that only counts as ended', () => {
  const noteOf = (scopes: readonly LoadScope[]) => scopes.find(({ old }) => old)?.note

  test('is named so if it was given up', () => {
    const story = new Story('accept')
    story.look(1, 100, true, 3)
    expect(noteOf(story.look(2, 0, true))).toContain("oldWorkers: 'accept'")
  })

  test('is named so if the time of the operator is too short', () => {
    const story = new Story({ within: 2_000 }).told(300_000)
    story.look(1, 100, true, 3)
    story.look(2, 0, true)
    story.look(2, 1, true)
    expect(noteOf(story.look(2, 2, true))).toContain('below hard-stop-after')
  })

  test('is not named so if hard-stop-after has ended it', () => {
    const story = new Story({ within: 2_000 }).told(1_000)
    story.look(1, 100, true, 3)
    story.look(2, 0, true)
    story.look(2, 1, true)
    const [, ended] = story.look(2, 2, true)
    expect(ended).toMatchObject({ state: 'ended' })
    expect(ended!.note).toBeUndefined()
  })
})

describe('a reload before the drain', () => {
  test.each([true, false])('leaves an unread process for a minute, member read: %s', (read) => {
    const story = new Story()
    if (read) story.look(1, 100, false)
    else story.memory.note(story.view(1, 100), story.now)
    expect(states(story.look(2, 0, false))).toEqual(['worker 2 read', 'worker 1 unread'])
    for (let i = 1; i < 60; i++) story.look(2, i, false)
    expect(states(story.look(2, 60, false))).toContain('worker 1 unread')
    expect(states(story.look(2, 61, false))).toContain('worker 1 ended')
    for (let i = 62; i < 130; i++) story.look(2, i, false)
    expect(states(story.look(2, 130, true))).toEqual(['worker 2 read'])
  })

  test.each(['runtime: haproxyRuntime({ socket, master })', 'oldWorkers: { within', "'accept'"])(
    'names a way out: %s',
    (way) => {
      const story = new Story()
      story.memory.note(story.view(1, 100), story.now)
      const [, before] = story.look(2, 0, true)
      expect(before!.note).toContain(way)
    },
  )

  test('is waited for without an end by a drain that began within that minute', () => {
    const story = new Story()
    story.memory.note(story.view(1, 100), story.now)
    for (let i = 0; i < 200; i++) story.look(2, i, i > 30)
    expect(states(story.look(2, 200, true))).toContain('worker 1 unread')
  })

  test('does not matter a minute later, where ready() was called', () => {
    const story = new Story()
    story.look(1, 100, true)
    story.look(2, 0, true)
    story.memory.released(REF)
    expect(states(story.look(2, 1, false))).toContain('worker 1 unread')
    for (let i = 2; i < 62; i++) story.look(2, i, false)
    expect(states(story.look(2, 62, true))).toContain('worker 1 ended')
  })

  test.each([
    ['accept' as const, 0],
    [{ within: 5_000 }, 5],
  ])('counts as ended with %j after %d s', (oldWorkers, after) => {
    const story = new Story(oldWorkers)
    story.memory.note(story.view(1, 100), story.now)
    for (let i = 0; i < after; i++)
      expect(states(story.look(2, i, true))).toContain('worker 1 unread')
    expect(states(story.look(2, after, true))).toContain('worker 1 ended')
  })
})

test('a younger process with the same pid is another one', () => {
  const story = new Story()
  const [before] = story.look(8, 100, true)
  const scopes = story.look(8, 2, true)
  expect(scopes[0]!.incarnation).not.toBe(before!.incarnation)
  expect(states(scopes)).toEqual(['worker 8#2 read', 'worker 8 unread'])
})

test('the hint about earlier processes ends with within', () => {
  const process = (uptime: number) => [{ scope: 'a', incarnation: 'a', uptime, seenAt: 0 }]
  expect(new ProcessMemory('wait').unverified(process(1e9))).toContain('oldWorkers')
  const within = new ProcessMemory({ within: 60_000 })
  expect(within.unverified(process(59))).toContain('within')
  expect(within.unverified(process(60))).toBeUndefined()
})
