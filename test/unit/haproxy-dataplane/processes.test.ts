import type { LoadScope } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { ProcessMemory } from '../../../src/adapters/haproxy-dataplane/read/processes.js'

const REF = { pool: 'web', member: 'web1' }
type OldWorkers = ConstructorParameters<typeof ProcessMemory>[0]

class Story {
  readonly memory: ProcessMemory
  now = 0

  constructor(oldWorkers: OldWorkers = 'wait') {
    this.memory = new ProcessMemory(oldWorkers)
  }

  /** One look: the process that answers, and how the member is found. */
  look(pid: number, uptime: number, held: boolean, active = 0): readonly LoadScope[] {
    this.now += 1_000
    const processes = this.memory.note([{ node: 'lb', pid, uptime, version: '3.2' }], this.now)
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
    story.memory.note([{ node: 'lb', pid: 2, uptime: 0, version: '3.2' }], story.now)
    story.memory.holding(REF, story.now)
    expect(states(story.look(3, 0, false))).toEqual([
      'worker 3 read',
      'worker 1 ended',
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
  test('ends a replaced process that was known to live by it', () => {
    const story = new Story()
    story.memory.hardStop(5_000, 0)
    for (let uptime = 100; uptime < 110; uptime++) story.look(1, uptime, true)
    for (let uptime = 0; uptime < 6; uptime++)
      expect(states(story.look(2, uptime, true))).toContain('worker 1 unread')
    expect(states(story.look(2, 6, true))).toContain('worker 1 ended')
    expect(story.memory.unverified([])).toContain('5000 ms')
  })

  test('says nothing of a process replaced just after it was read', () => {
    const story = new Story()
    story.memory.hardStop(5_000, 0)
    story.look(1, 100, true)
    for (let uptime = 0; uptime < 30; uptime++)
      expect(states(story.look(2, uptime, true))).toContain('worker 1 unread')
  })

  test('counts from when a process was told to stop', () => {
    const { memory } = new Story('hard-stop-after')
    memory.hardStop(30_000, 0)
    const at = (uptime: number): unknown =>
      memory.unverified(memory.note([{ node: 'lb', pid: 1, uptime, version: '3.2' }], 0))
    expect(at(30)).toContain('is not over yet')
    expect(at(31)).toBeUndefined()
  })

  test.each(['unset', 900_000] as const)('that is %s ends nothing in a minute', (value) => {
    const story = new Story()
    story.memory.hardStop(1_000, 0)
    story.memory.hardStop(value, 0)
    for (let uptime = 100; uptime < 115; uptime++) story.look(1, uptime, true)
    for (let uptime = 0; uptime < 30; uptime++)
      expect(states(story.look(2, uptime, true))).toContain('worker 1 unread')
  })

  test('counts by the largest value that was seen', () => {
    const story = new Story('hard-stop-after')
    story.memory.hardStop(300_000, 0)
    story.look(1, 100, true)
    story.memory.hardStop(2_000, 1)
    for (let uptime = 0; uptime < 30; uptime++)
      expect(states(story.look(2, uptime, true))).toContain('worker 1 unread')
  })
})

test('a reload before the drain blocks nothing, and is forgotten', () => {
  const story = new Story()
  story.look(1, 100, false)
  expect(states(story.look(2, 0, false))).toEqual(['worker 2 read', 'worker 1 ended'])
  for (let i = 0; i < 70; i++) story.look(2, i, false)
  expect(states(story.look(2, 71, true))).toEqual(['worker 2 read'])
})

test('reloads from before ready() do not matter any more', () => {
  const story = new Story()
  story.look(1, 100, true)
  story.look(2, 0, true)
  story.memory.released(REF, story.now)
  expect(states(story.look(2, 5, false))).toContain('worker 1 ended')
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
