import assert from 'node:assert/strict'
import { formatRef, isInForce } from '../../provider/member-ref.js'
import type { Change, ChangeResult } from '../../provider/contract.js'
import {
  assertDone,
  assertRejected,
  assertSame,
  assertUnsupported,
  assertWork,
  byName,
  NETWORK,
  outcome,
  readingOf,
  succeeded,
  thereIs,
  work,
  type Bench,
} from './bench.js'

const LEVELS = ['drain', 'maint'] as const
const OTHER = '198.51.100.77:7#another-member'
const GAVE_UP = { gaveUp: 'in the middle' }

/** What `apply` owes, for every change that the product can do and every one that it can't. */
export const changes: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
  'accepts a call without changes': async (bench) => {
    assert.deepEqual(await bench.apply([]), [])
  },

  'holds a member in every state of its ladder, and no other member': async (bench) => {
    for (const to of bench.levels) {
      const held = await bench.hold(bench.a, to)
      assertSame(held.serves, false, `a member in ${to} does not serve`)
      assertSame((await bench.present(bench.b)).own, 'ready', 'the other one is untouched')
    }
  },

  'comes into force in every scope': async (bench) => {
    await bench.hold(bench.a)
    await bench.untilReading(bench.a, 'the state is in force', ({ scopes }) =>
      scopes.every((scope) => scope.state === 'read' && isInForce(scope, bench.level)),
    )
  },

  'refuses a state that is not on its ladder, and changes nothing': async (bench) => {
    const missing = LEVELS.filter((to) => !bench.levels.includes(to))
    if (missing.length === 0) bench.skip('its ladder has every state')
    for (const to of missing) {
      const result = await bench.applyOne({ kind: 'hold', ref: bench.a, to })
      assertUnsupported(result, `hold to ${to}`)
      assert.equal((await bench.present(bench.a)).own, 'ready')
    }
  },

  'accepts a repeated hold': async (bench) => {
    const { level, a } = bench
    await bench.hold(a)
    await bench.done({ kind: 'hold', ref: a, to: level })
    const results = await bench.apply([
      { kind: 'hold', ref: a, to: level },
      { kind: 'hold', ref: a, to: level },
    ])
    assertDone(results, 'the same change twice in one call is done')
    assert.equal((await bench.present(a)).own, level)
  },

  'sees in the second change of a member what the first one did': async (bench) => {
    const { a, b, level } = bench
    const up = { kind: 'hold', ref: a, to: level } as const
    const back = { kind: 'restore', ref: a, expect: level, to: 'ready' } as const
    const results = await bench.apply([up, { ...up, ref: b }, back])
    assertDone(results, 'each of them is done, in order')
    await bench.untilOwn(a, 'ready')
    await bench.untilOwn(b, level)
    const undone = (await bench.apply([up, back])).slice(1)
    assertDone(undone, 'and the undo of a hold in one call too')
    await bench.untilOwn(a, 'ready')
  },

  'raises and never lowers': async (bench) => {
    const highest = bench.levels.at(-1) ?? bench.level
    await bench.harness.setBehind(bench.a, highest)
    await bench.untilOwn(bench.a, highest)
    for (const to of bench.levels) {
      await bench.done({ kind: 'hold', ref: bench.a, to })
      await bench.stays(
        `a member found in ${highest} stays there under hold to ${to}`,
        async () => {
          return (await bench.present(bench.a)).own === highest
        },
      )
    }
  },

  'restores what it changed': async (bench) => {
    const { level, a } = bench
    const { native } = await bench.present(a)
    await bench.hold(a)
    const before = native === undefined ? {} : { native }
    await bench.done({ kind: 'restore', ref: a, expect: level, to: 'ready', ...before })
    const reading = await bench.untilOwn(a, 'ready')
    await bench.until('it serves again', async () => (await bench.present(a)).serves || undefined)
    assert.equal(reading.inherited ?? 'ready', 'ready')
    const again = await bench.applyOne({
      kind: 'restore',
      ref: a,
      expect: level,
      to: 'ready',
      ...before,
    })
    if (!succeeded(again)) assertRejected(again, ['CONFLICT'], 'a second restore')
    assert.equal((await bench.present(a)).own, 'ready')
  },

  'restores step by step': async (bench) => {
    const [low, high] = bench.levels
    if (!low || !high) return bench.skip('its ladder has one state beyond ready')
    const { native } = await bench.present(bench.a)
    const before = native === undefined ? {} : { native }
    await bench.hold(bench.a, low)
    await bench.hold(bench.a, high)
    await bench.done({ kind: 'restore', ref: bench.a, expect: high, to: low, ...before })
    await bench.untilOwn(bench.a, low)
    await bench.done({ kind: 'restore', ref: bench.a, expect: low, to: 'ready', ...before })
    await bench.untilOwn(bench.a, 'ready')
  },

  'restores only if the expected state is found': async (bench) => {
    const { a } = bench
    for (const found of bench.levels) {
      await bench.harness.setBehind(a, found)
      await bench.untilOwn(a, found)
      for (const expect of bench.capabilities.ladder) {
        if (expect === found) continue
        const result = await bench.applyOne({ kind: 'restore', ref: a, expect, to: 'ready' })
        assertRejected(result, ['CONFLICT'], `restore from ${expect}, found ${found}`)
        assertSame((await bench.present(a)).own, found, 'nothing was touched')
      }
    }
  },

  'sees what another client does': async (bench) => {
    for (const to of [...bench.levels, 'ready'] as const) {
      await bench.harness.setBehind(bench.a, to)
      await bench.untilOwn(bench.a, to)
    }
    assert.equal((await bench.present(bench.b)).own, 'ready')
  },

  'reads a member that is gone as absent, and changes nothing there': async (bench) => {
    const { a, b, level } = bench
    const { identity } = await bench.present(a)
    await bench.harness.setBehind(a, 'gone')
    await bench.untilReading(a, 'it is gone', (r) => !r.present)
    assertSame((await bench.present(b)).present, true, 'the other one is there')
    await bench.refusesAbsent({ kind: 'hold', ref: a, to: level, identity })
    await bench.refusesAbsent({ kind: 'hold', ref: a, to: level })
    await bench.refusesAbsent({ kind: 'restore', ref: a, expect: level, to: 'ready', identity })
    assertSame((await bench.read(a)).present, false, 'it did not come back')
  },

  'touches nothing under another identity': async (bench) => {
    const { a } = bench
    const kinds: readonly Change[] = [
      { kind: 'hold', ref: a, to: bench.level, identity: OTHER },
      { kind: 'restore', ref: a, expect: 'ready', to: bench.level, identity: OTHER },
      { kind: 'terminate', ref: a, identity: OTHER },
      { kind: 'remove', ref: a, identity: OTHER },
    ]
    const before = await bench.present(a)
    const busy = bench.counts ? await bench.occupy(a) : undefined
    for (const change of kinds) {
      const result = await bench.applyOne(change)
      const codes = ['CONFLICT', 'NOT_FOUND', 'UNSUPPORTED'] as const
      assertRejected(result, codes, `${change.kind} of another identity`)
      const after = await bench.present(a)
      assertSame(after.own, before.own, `${change.kind}: its state is untouched`)
      assert.equal(after.identity, before.identity)
      if (busy) assertWork(after, `${change.kind}: its work is untouched`)
    }
    await busy?.()
  },

  'gives a refusal as a value, and does the rest': async (bench) => {
    const { a, b, level } = bench
    const [first, second] = await bench.apply([
      { kind: 'hold', ref: a, to: level, identity: OTHER },
      { kind: 'hold', ref: b, to: level, identity: (await bench.present(b)).identity },
    ])
    assert.ok(first && second)
    assertRejected(first, ['CONFLICT', 'NOT_FOUND'], 'the first change')
    assertDone([second], 'the second change is done')
    await bench.untilOwn(b, level)
    assert.equal((await bench.present(a)).own, 'ready')
  },

  'changes many members in one call, with one result each, in order': async (bench) => {
    const { members } = bench.harness
    const refs = [...members].reverse()
    const results = await bench.apply(refs.map((ref) => ({ kind: 'hold', ref, to: bench.level })))
    assertDone(results, 'every change is done')
    for (const ref of members) await bench.untilOwn(ref, bench.level)
  },

  'hands up each result once, as it stands in the answer, or none at all': async (bench) => {
    const { a, b, level } = bench
    const nobody = { pool: bench.pool, member: 'drainable-nobody' }
    const { identity } = await bench.present(b)
    const handed: (readonly [index: number, result: ChangeResult])[] = []
    const results = await bench.apply(
      [
        { kind: 'hold', ref: a, to: level, identity: OTHER },
        { kind: 'hold', ref: nobody, to: level },
        { kind: 'hold', ref: b, to: level, identity },
        { kind: 'hold', ref: a, to: level },
        { kind: 'hold', ref: b, to: level },
      ],
      (index, result) => handed.push([index, result]),
    )
    const at = handed.length
    for (const [index, result] of handed) {
      assert.deepEqual(result, results[index], `result ${index} is the one that is answered`)
    }
    const indexes = new Set(handed.map(([index]) => index))
    assertSame(indexes.size, at, 'no result is handed up twice')
    assert.ok(at === 0 || at === results.length, `${at} of ${results.length} were handed up`)
    await bench.untilOwn(b, level)
    await bench.stays('nothing is handed up after the call', () =>
      Promise.resolve(handed.length === at),
    )
  },

  'has done what it hands up, even if the call is given up after that': async (bench) => {
    const { members } = bench.harness
    const controller = new AbortController()
    const handed = new Map<number, ChangeResult>()
    const call = bench.harness.provider.apply(
      members.map((ref) => ({ kind: 'hold', ref, to: bench.level })),
      bench.ctx(controller.signal, (index, result) => {
        handed.set(index, result)
        controller.abort(GAVE_UP)
      }),
    )
    const end = await bench.within(outcome(call), 'an apply that is given up in the middle')
    if ('error' in end) assertSame(end.error, GAVE_UP, 'the reason of the signal, as it is')
    for (const [index, result] of handed) {
      const ref = members[index]
      assert.ok(ref, `a result of a change ${index} that was not asked for`)
      if (succeeded(result)) await bench.untilOwn(ref, bench.level)
      else {
        assertRejected(result, NETWORK, `${formatRef(ref)}, which was not sent,`)
        assertSame((await bench.present(ref)).own, 'ready', 'nothing came of what was refused')
      }
    }
  },

  'answers calls that are made side by side': async (bench) => {
    const { a, b } = bench
    const { provider } = bench.harness
    const { identity } = await bench.present(b)
    const hold: Change = { kind: 'hold', ref: b, to: bench.level, identity }
    const calls = Promise.all([
      provider.observe([a], bench.ctx()),
      provider.observe('all', bench.ctx()),
      provider.apply([hold], bench.ctx()),
      provider.observe([a, b], bench.ctx()),
    ])
    const [first, all, results, both] = await bench.within(calls, 'four calls at once')
    const readings = [
      readingOf(first, a),
      readingOf(all, b),
      readingOf(both, a),
      readingOf(both, b),
    ]
    for (const reading of readings) thereIs(reading)
    assertDone(results, 'the change is done')
    await bench.untilOwn(b, bench.level)
    assertSame((await bench.present(a)).own, 'ready', 'the other one is untouched')
  },

  'keeps the member under its identity through every change': async (bench) => {
    const { a, level } = bench
    const { identity, native } = await bench.present(a)
    for (const to of bench.levels) {
      const held = await bench.hold(a, to)
      assertSame(held.identity, identity, `in ${to} it is the same member`)
    }
    const top = bench.levels.at(-1) ?? level
    await bench.done({
      kind: 'restore',
      ref: a,
      expect: top,
      to: 'ready',
      identity,
      ...(native !== undefined && { native }),
    })
    assert.equal((await bench.untilOwn(a, 'ready')).identity, identity)
  },

  'cuts work where it can, and says so where it can not': async (bench) => {
    const { a, capabilities } = bench
    if (!capabilities.terminate) {
      const busy = bench.counts ? await bench.occupy(a) : undefined
      assertUnsupported(await bench.applyOne({ kind: 'terminate', ref: a }), 'terminate')
      if (busy) assertWork(await bench.read(a), 'the work goes on')
      await busy?.()
      return
    }
    assert.ok(bench.counts, 'a provider that cuts work also counts it')
    const end = await bench.occupy(a)
    await bench.hold(a)
    const held = await bench.present(a)
    const { identity } = held
    const result = await bench.applyOne({ kind: 'terminate', ref: a, identity })
    if (result.status === 'rejected' && result.error.code === 'UNSUPPORTED') {
      assertUnsupported(result, 'terminate')
      assertWork(await bench.read(a), 'the work goes on')
      await end()
      return bench.skip('it can cut work, but not that of this member')
    }
    assert.ok(succeeded(result), `terminate is done, not ${result.status}`)
    const cut = 'terminated' in result ? result.terminated : undefined
    if (cut !== undefined && work(held) > 0) {
      assert.ok(Number.isSafeInteger(cut) && cut >= 1, `it says how many were cut, not ${cut}`)
    }
    await bench.untilReading(a, 'the work is gone', (r) => work(r) === 0)
    assertSame((await bench.present(a)).own, bench.level, 'the member is held as before')
    await end()
    assert.ok(
      succeeded(await bench.applyOne({ kind: 'terminate', ref: a })),
      'nothing left is no error',
    )
  },

  'keeps or loses states at a reload as it says, and shows the reload': async (bench) => {
    const { a, capabilities } = bench
    const reload = bench.hook('reload')
    const before = await bench.hold(a)
    await reload()
    await bench.until('the new process is read', async () => {
      const { scopes } = await bench.present(a)
      const told = scopes.some(({ scope, incarnation }) => {
        return byName(before.scopes).get(scope)?.incarnation !== incarnation
      })
      return told || !bench.counts || undefined
    })
    const { survivesReload } = capabilities
    if (survivesReload !== undefined)
      await bench.untilOwn(a, survivesReload ? bench.level : 'ready')
    assertSame((await bench.present(a)).identity, before.identity, 'it is the same member')
    await bench.hold(a)
  },
}
