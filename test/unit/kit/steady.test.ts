import type { AdminState, Clock, MemberRef, Snapshot } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import { Steady } from '../../../src/kit/look-cost.js'

const REFS: readonly MemberRef[] = [{ pool: 'web', member: 'web1' }]

function snapshotOf(own: AdminState = 'ready', active = 0): Snapshot {
  const scope = { scope: 'a', incarnation: '1', state: 'read', sampledAt: 0, active, queued: 0 }
  return {
    readings: [
      {
        ref: REFS[0]!,
        present: true,
        identity: 'web1',
        own,
        serves: own === 'ready',
        health: 'up',
        scopes: [scope as Snapshot['readings'][number]['scopes'][number]],
      },
    ],
    pools: [],
  }
}

/** A watcher that looks every two seconds, and says at which of its looks something was asked. */
function watcher(pause = 2_000) {
  const steady = new Steady(pause)
  const now = { at: 0 }
  const clock: Clock = { now: () => now.at, setTimeout: () => () => undefined }
  const look = async (
    snapshot = snapshotOf(),
    refs: readonly MemberRef[] | 'all' = REFS,
  ): Promise<boolean> => {
    let isAsked = false
    await steady.look(refs, { clock }, () => {
      isAsked = true
      return Promise.resolve(snapshot)
    })
    return isAsked
  }
  const looks = async (count: number, of = snapshotOf, step = pause): Promise<number[]> => {
    const asked: number[] = []
    for (let i = 0; i < count; i += 1) {
      now.at += step
      if (await look(of())) asked.push(now.at)
    }
    return asked
  }
  return { steady, clock, now, look, looks }
}

const widest = (asked: readonly number[]): number =>
  Math.max(...asked.slice(1).map((at, i) => at - asked[i]!))

describe('a look at members that are in service without a change', () => {
  test.each([1_000, 2_000, 3_000])(
    'every %i ms leaves time for one more within 9.5 s',
    async (pause) => {
      const it = watcher(pause)
      const asked = await it.looks(100)
      expect(asked.length).toBeLessThan(60)
      expect(widest(asked) + pause).toBeLessThanOrEqual(9_500)
      expect(widest(asked)).toBeGreaterThan(5_000)
    },
  )

  test('is left out while only numbers move', async () => {
    let active = 0
    const it = watcher()
    expect((await it.looks(100, () => snapshotOf('ready', (active += 1)))).length).toBeLessThan(40)
  })

  test('is taken for a caller that comes between', async () => {
    const it = watcher()
    await it.looks(20)
    it.now.at += 700
    expect(await it.look()).toBe(true)
    it.now.at += 1_300
    expect(await it.look()).toBe(true)
    expect(await it.looks(3)).toHaveLength(3)
  })

  test('is taken for other members', async () => {
    const it = watcher()
    await it.looks(20)
    it.now.at += 2_000
    expect(await it.look(snapshotOf(), [{ pool: 'web', member: 'web2' }])).toBe(true)
    expect(await it.looks(4)).toHaveLength(4)
  })

  test('is taken for a minute after something was changed', async () => {
    const it = watcher()
    await it.looks(20)
    it.steady.wake(it)
    expect(await it.looks(29)).toHaveLength(29)
    expect((await it.looks(30)).length).toBeLessThan(15)
  })

  test('is brief two times in three, and whole again where one shows something new', async () => {
    const it = watcher()
    const kinds: string[] = []
    const look = async (own: AdminState): Promise<void> => {
      it.now.at += 2_000
      await it.steady.look(REFS, it, (brief) => {
        kinds.push(brief ? 'brief' : 'whole')
        return Promise.resolve(snapshotOf(own))
      })
    }
    while (kinds.length < 13) await look('ready')
    expect(kinds.slice(0, 6)).not.toContain('brief')
    expect(kinds.slice(6).filter((kind) => kind === 'whole')).toHaveLength(2)
    while (kinds.at(-1) !== 'brief' || kinds.at(-2) !== 'whole') await look('ready')
    const before = kinds.length
    while (kinds.length === before) await look('drain')
    expect(kinds.slice(before)).toEqual(['brief', 'whole'])
  })

  test('of a watcher that is fast by its own wish is taken', async () => {
    expect(await watcher(200).looks(50)).toHaveLength(50)
  })
})

test.each(['drain', 'maint'] as const)('each look at a member in %s is taken', async (own) => {
  expect(await watcher().looks(50, () => snapshotOf(own))).toHaveLength(50)
})

test('a state that has changed is looked at again at once', async () => {
  const it = watcher()
  await it.looks(20)
  let own: AdminState = 'drain'
  const [first] = await it.looks(5, () => snapshotOf(own))
  own = 'ready'
  expect(first).toBeDefined()
  expect(await it.looks(5, () => snapshotOf(own))).toHaveLength(5)
})
