import type { HardStop } from '../../../src/adapters/haproxy-dataplane/read/configured.js'
import { ProcessMemory } from '../../../src/adapters/haproxy-dataplane/read/doubts.js'
import type { LoadScope } from 'drainable/provider'
import { describe, expect, test } from 'vitest'

type OldWorkers = ConstructorParameters<typeof ProcessMemory>[0]

class Story {
  readonly memory: ProcessMemory
  now = 0

  constructor(oldWorkers: OldWorkers = 'wait') {
    this.memory = new ProcessMemory(oldWorkers)
  }

  /** A process answers. */
  process(pid: number, uptime: number) {
    return this.memory.note({ info: { node: 'lb', pid, uptime, version: '3.2' } }, this.now)
  }

  /** The configuration is read. */
  told(value: HardStop): this {
    this.memory.hardStop(value)
    return this
  }

  /** One look: the process that answers, and the member in it. */
  look(pid: number, uptime: number, active = 0, held = true): readonly LoadScope[] {
    this.now += 1_000
    const process = this.process(pid, uptime)
    const read: LoadScope = {
      ...process,
      state: 'read',
      sampledAt: this.now,
      active,
      queued: 0,
      arrivals: 1,
      inForce: true,
    }
    return this.memory.scopes(process, read, held, this.now)
  }
}

function states(scopes: readonly LoadScope[]): string[] {
  return scopes.map(({ scope, state }) => `${scope} ${state}`)
}

describe('a reload in mid-drain', () => {
  test('leaves the replaced process listed as unread', () => {
    const story = new Story()
    story.look(1, 100, 3)
    const scopes = story.look(2, 0)
    expect(states(scopes)).toEqual(['worker 2 read', 'worker 1 unread'])
    expect(scopes[1]).toMatchObject({ old: true })
    expect(scopes[1]!.note).toContain('oldWorkers')
    expect(states(story.look(2, 900))).toContain('worker 1 unread')
  })

  test('is listed if it came and went between two looks', () => {
    const story = new Story()
    story.look(1, 100)
    story.process(2, 0)
    expect(states(story.look(3, 0))).toEqual([
      'worker 3 read',
      'worker 1 unread',
      'worker 2 unread',
    ])
  })

  test('leaves a process that counts as ended, with accept', () => {
    const story = new Story('accept')
    story.look(1, 100)
    expect(states(story.look(2, 0))).toEqual(['worker 2 read', 'worker 1 ended'])
    expect(story.memory.unverified(story.process(2, 0))).toContain('reload')
  })

  test('leaves one that ends the set time after the present start, with within', () => {
    const story = new Story({ within: 30_000 })
    story.look(1, 100)
    expect(states(story.look(2, 10))).toContain('worker 1 unread')
    story.now += 19_000
    expect(states(story.look(2, 29))).toContain('worker 1 unread')
    story.now += 9_000
    // a slow start: up for 40 s, but the old one was told to stop less than 30 s ago at the earliest
    expect(states(story.look(2, 40))).toContain('worker 1 unread')
    expect(states(story.look(2, 41))).toContain('worker 1 ended')
  })

  test('leaves two processes if there were two reloads', () => {
    const story = new Story()
    story.look(1, 100)
    story.look(2, 1)
    expect(states(story.look(3, 1))).toEqual([
      'worker 3 read',
      'worker 1 unread',
      'worker 2 unread',
    ])
  })
})

describe('hard-stop-after of the configuration', () => {
  test.each(['unset', 5_000] as const)('that is %s ends no process by itself', (value) => {
    const story = new Story().told(value)
    story.look(1, 100)
    story.look(2, 0)
    for (let uptime = 0; uptime < 30; uptime++) {
      const scopes = states(story.look(3, uptime))
      expect(scopes).toContain('worker 1 unread')
      expect(scopes).toContain('worker 2 unread')
    }
  })

  test('is named as the time to give as within', () => {
    const story = new Story().told(5_000)
    expect(story.memory.unverified(story.process(1, 1_000))).toContain('5000 ms')
  })

  test.each([[[300_000, 2_000]], [['unset', 2_000]]] as const)(
    'is held against within by the largest value: %j',
    (values) => {
      const story = new Story({ within: 3_000 })
      for (const value of values) story.told(value)
      const words = story.memory.unverified(story.process(1, 1_000))
      expect(words).toContain(values[0] === 'unset' ? 'no hard-stop-after' : '(300000 ms)')
    },
  )
})

describe('a process that only counts as ended', () => {
  const noteOf = (scopes: readonly LoadScope[]) => scopes.find(({ old }) => old)?.note

  test('is named so if it was given up', () => {
    const story = new Story('accept')
    story.look(1, 100, 3)
    expect(noteOf(story.look(2, 0))).toContain("oldWorkers: 'accept'")
  })

  test('is named so if the time of the operator is too short', () => {
    const story = new Story({ within: 2_000 }).told(300_000)
    story.look(1, 100, 3)
    story.look(2, 0)
    story.look(2, 1)
    story.look(2, 2)
    expect(noteOf(story.look(2, 3))).toContain('below hard-stop-after')
  })

  test('is not named so if hard-stop-after has ended it', () => {
    const story = new Story({ within: 2_000 }).told(1_000)
    story.look(1, 100, 3)
    story.look(2, 0)
    story.look(2, 1)
    story.look(2, 2)
    const [, ended] = story.look(2, 3)
    expect(ended).toMatchObject({ state: 'ended' })
    expect(ended!.note).toBeUndefined()
  })
})

describe('a reload before the drain', () => {
  test.each([true, false])('leaves an unread process for a minute, member read: %s', (read) => {
    const story = new Story()
    if (read) story.look(1, 100)
    else story.process(1, 100)
    for (let i = 0; i <= 60; i++)
      expect(states(story.look(2, i))).toEqual(['worker 2 read', 'worker 1 unread'])
    // A drain that has seen it goes on waiting; nothing else does.
    expect(states(story.look(2, 61))).toEqual(['worker 2 read'])
    expect(states(story.look(2, 62, 0, false))).toEqual(['worker 2 read', 'worker 1 ended'])
    expect(story.memory.hint).toContain('oldWorkers: { within')
    story.now += 60_000
    expect(states(story.look(2, 123, 0, false))).toEqual(['worker 2 read'])
  })

  test('is remembered for 200 of them, where many follow each other', () => {
    const story = new Story()
    for (let pid = 1; pid <= 400; pid++) {
      story.now += 30_000
      story.look(pid, 0, 0, false)
    }
    story.now += 61_000
    expect(story.look(400, 61, 0, false)).toHaveLength(201)
  })

  test('that is followed by another one is not ended by what that forgot', () => {
    const story = new Story()
    story.look(1, 100)
    for (let i = 0; i <= 80; i++) story.look(2, i)
    expect(states(story.look(3, 0, 0, false))).toEqual(['worker 3 read', 'worker 2 unread'])
  })

  test.each(['runtime: haproxyRuntime({ socket, master })', 'oldWorkers: { within', "'accept'"])(
    'names a way out: %s',
    (way) => {
      const story = new Story()
      story.process(1, 100)
      const [, before] = story.look(2, 0)
      expect(before!.note).toContain(way)
    },
  )

  test.each([
    ['accept' as const, 0],
    [{ within: 5_000 }, 6],
  ])('counts as ended with %j after %d s', (oldWorkers, after) => {
    const story = new Story(oldWorkers)
    story.process(1, 100)
    for (let i = 0; i < after; i++) expect(states(story.look(2, i))).toContain('worker 1 unread')
    expect(states(story.look(2, after))).toContain('worker 1 ended')
  })
})

test('a younger process with the same pid is another one', () => {
  const story = new Story()
  const [before] = story.look(8, 100)
  const scopes = story.look(8, 2)
  expect(scopes[0]!.incarnation).not.toBe(before!.incarnation)
  expect(states(scopes)).toEqual(['worker 8#2 read', 'worker 8 unread'])
})

test('the hint about earlier processes ends with within', () => {
  const process = (uptime: number) => ({ scope: 'a', incarnation: 'a', uptime, seenAt: 0 })
  expect(new ProcessMemory('wait').unverified(process(1e9))).toContain('oldWorkers')
  const within = new ProcessMemory({ within: 60_000 })
  expect(within.unverified(process(60))).toContain('within')
  expect(within.unverified(process(61))).toBeUndefined()
})
